package agent

import (
	"strings"
	"syscall"
)

// output is the read end of the task's stdout or stderr.
type output struct {
	fd   int // -1 after the end of the file
	typ  string
	name string
	kept int64
	cut  bool
}

// drain reads once from s; epoll said that it will not block.
func (l *loop) drain(s *output) {
	n, err := syscall.Read(s.fd, l.buf)
	if err == syscall.EINTR {
		return
	}
	if n <= 0 {
		closeFD(&s.fd)
		return
	}
	keep := min(int64(n), l.o.cap-s.kept)
	if keep > 0 && l.w.Write(s.typ, Now(), "", l.buf[:keep]) == nil {
		s.kept += keep
	}
	if keep < int64(n) && !s.cut {
		s.cut = true
		l.job.Note(s.name + " truncated at " + itoa(l.o.cap) + " bytes")
		if l.o.endOnCap {
			l.fail(Now(), s.name+" passed "+itoa(l.o.cap)+" bytes, and the trial says to end then")
		}
	}
}

// sweep ends what the task left behind and takes the rest of its output.
func (l *loop) sweep() {
	closeFD(&l.job.out)
	closeFD(&l.job.err)
	l.nextSample, l.deadline, l.stop, l.look, l.ownerLook = never, never, never, never, never
	if left := l.job.members(); len(left) > 0 {
		var names []string
		for _, p := range left {
			names = append(names, p.name+" (pid "+itoa(int64(p.pid))+")")
		}
		l.job.Note("ended what the task left running: " + strings.Join(names, ", "))
		l.job.signal(syscall.SIGTERM)
	}
	end := Now() + drainNS
	for l.out[0].fd >= 0 || l.out[1].fd >= 0 {
		now := Now()
		if now >= end {
			l.job.Note("a process outside the task's group keeps its output open; what it writes later is lost")
			break
		}
		l.giveUp = never
		l.pollOutput(end - now)
	}
	l.job.killAll()
}

func (l *loop) pollOutput(ns int64) {
	if l.wake[0] >= 0 { // readable for good
		syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_DEL, l.wake[0], &syscall.EpollEvent{})
		closeFD(&l.wake[0])
	}
	l.poll(ns)
}
