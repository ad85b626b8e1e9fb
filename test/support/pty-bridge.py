# A terminal for a child process: argv is the command; stdin takes JSON lines {"input": text} or {"resize": [rows, columns]};
# what the terminal shows comes out of stdout as it is; the exit code is the child's (128 + signal when it was killed).
import fcntl, json, os, pty, select, signal, struct, sys, termios

rows, columns = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])

def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.kill(pid, signal.SIGWINCH)

resize(rows, columns)
pending, sources = b"", [0, terminal]
while terminal in sources:
    ready, _, _ = select.select(sources, [], [])
    if terminal in ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            data = b""
        if not data:
            sources.remove(terminal)
            continue
        while data:
            data = data[os.write(1, data):]
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            os.kill(pid, signal.SIGHUP)
            sources.remove(0)
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "resize" in message:
                resize(*message["resize"])
            else:
                text = message["input"].encode()
                while text:
                    text = text[os.write(terminal, text):]
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256 if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
