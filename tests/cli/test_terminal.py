"""The terminal here is as it was, also when the connection breaks."""

import os
import pathlib
import subprocess
import sys
import termios
import threading

from websockets.sync.server import ServerConnection, serve

from tests.support.scripted_http import SESSION

MAIN = "import sys; from sandbay.cli.main import run; sys.exit(run())"


def test_a_connection_that_breaks_gives_the_terminal_back(tmp_path: pathlib.Path) -> None:
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    said: list[str | bytes] = []

    def hold(socket: ServerConnection) -> None:
        said.append(socket.recv())
        while termios.tcgetattr(slave) == before:
            pass
        os.write(master, b"\x03")
        while not isinstance(message := socket.recv(), bytes):
            said.append(message)
        said.append(message)
        socket.send(b"\1shown")
        socket.close_socket()

    with serve(hold, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        env = {**os.environ, "SANDBAY_URL": url, "SANDBAY_API_KEY": "k", "HOME": str(tmp_path)}
        command = [sys.executable, "-c", MAIN, "sessions", "exec", SESSION, "-t", "-i", "--", "sh"]
        try:
            with subprocess.Popen(command, env=env, stdin=slave, stdout=slave, stderr=slave) as process:
                assert process.wait(60) == 125
        finally:
            server.shutdown()
            thread.join()
    assert termios.tcgetattr(slave) == before
    assert said[0] == '{"exec":{"argv":["sh"]},"stdin":true,"tty":true,"size":{"rows":24,"columns":80}}'
    assert said[-1] == b"\0\x03"  # Ctrl-C goes inside
    shown = os.read(master, 65536)
    assert b"shown" in shown
    assert b"stream_lost" in shown
    os.close(slave)
    os.close(master)
