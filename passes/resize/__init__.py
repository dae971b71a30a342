"""What the pass resize_form stands on: lengths as they run, values known before run time, forms, intent."""
