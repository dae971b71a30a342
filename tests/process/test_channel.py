"""The bytes between two processes: messages and lines of every size, the end of the other side, and numbers of files."""

from __future__ import annotations

import os
import socket
import sys
import threading

import pytest

from onnx_migrate.process.channel import LENGTH, SocketChannel, above_standard_streams
from onnx_migrate.process.waiting import Expired, Waiting
from tests.support.skips import Elsewhere, skip_if

pytestmark = skip_if(sys.platform == "win32", "pipes there", Elsewhere.LINUX)


def soon() -> Waiting:
    return Waiting(10.0, 10.0)


@pytest.mark.parametrize("size", [0, 1, LENGTH.size, 1 << 16, (1 << 20) + 1, 3 << 20])
def test_messages_of_all_sizes_one_after_the_other(size: int) -> None:
    channel, data = SocketChannel(), os.urandom(size)
    sent = LENGTH.pack(size) + data
    writer = threading.Thread(target=lambda: channel.theirs.sendall(sent + LENGTH.pack(2) + b"ab"))
    writer.start()
    assert channel.message(soon()) == data
    assert channel.message(soon()) == b"ab"
    writer.join()
    channel.close()


def test_lines_in_parts_and_the_last_without_an_end() -> None:
    channel = SocketChannel()
    for part in (b"on", b"e\ntwo\nth", b"ree"):
        channel.theirs.sendall(part)
    channel.theirs.close()
    assert [channel.line(soon()) for _ in range(4)] == [b"one\n", b"two\n", b"three", b""]
    channel.close()


def test_data_that_nobody_takes_waits_as_long_as_it_may() -> None:
    channel = SocketChannel()
    with pytest.raises(Expired):
        channel.send(bytes(8 << 20), Waiting(0.2, 0.2))
    with pytest.raises(Expired):
        channel.message(Waiting(0.0, 0.0))
    channel.close()


def test_the_end_of_the_other_side() -> None:
    channel = SocketChannel()
    channel.theirs.sendall(LENGTH.pack(5) + b"ab")
    channel.theirs.close()
    with pytest.raises(EOFError):
        channel.message(soon())
    with pytest.raises(BrokenPipeError):
        channel.send(b"x", soon())
    channel.close()


def test_an_end_with_the_number_of_a_standard_stream_gets_another() -> None:
    one, other = socket.socketpair()
    assert above_standard_streams(one) is one
    kept = os.dup(0)
    try:
        os.dup2(other.fileno(), 0)
        moved = above_standard_streams(socket.socket(fileno=0))
        assert moved.fileno() > 2
        one.sendall(b"x")
        assert moved.recv(1) == b"x"
        moved.close()
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    one.close()
    other.close()
