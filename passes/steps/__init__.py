"""The steps of operators, one file for each family: to newer versions, to older ones, and where a target lacks the operator."""
