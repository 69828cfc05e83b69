package agent

import (
	"bytes"
	"syscall"
	"unsafe"

	"kernsweep/workloads/wire"
)

// sampler copies the counters of /proc into a spool. Its files stay open and
// its buffers are reused: a sample allocates nothing once they have grown.
type sampler struct {
	files   [4]source
	freqs   []freqFile
	records [5]wire.Record
	chunk   []byte
	out     []byte
	late    int // scheduled samples that were skipped because they were overdue
}

// source is one file of /proc and what of it is kept.
type source struct {
	typ  string
	path string
	fd   int
	// keep are the beginnings of the lines to keep; nil keeps the whole file.
	keep [][]byte
	// last, when not nil, begins the last wanted line: the rest is not read.
	last []byte
	// need is how many bytes the wanted part took last time.
	need int
}

func newSampler() *sampler {
	s := &sampler{chunk: make([]byte, 8<<10), out: make([]byte, 0, 8<<10)}
	s.files = [4]source{
		{typ: wire.TypeStat, path: "/proc/stat"},
		{typ: wire.TypeVMStat, path: "/proc/vmstat", last: []byte("pswpout "),
			keep: prefixes("pgpgin ", "pgpgout ", "pswpin ", "pswpout ")},
		{typ: wire.TypeMem, path: "/proc/meminfo",
			keep: prefixes("MemTotal:", "MemFree:", "MemAvailable:", "Buffers:", "Cached:", "SReclaimable:", "Swap")},
		{typ: wire.TypeLoad, path: "/proc/loadavg"},
	}
	for i := range s.files {
		f := &s.files[i]
		fd, err := syscall.Open(f.path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			fd = -1
		}
		f.fd = fd
	}
	s.freqs = openFreqs()
	return s
}

func prefixes(w ...string) [][]byte {
	var r [][]byte
	for _, s := range w {
		r = append(r, []byte(s))
	}
	return r
}

func (s *sampler) close() {
	for _, f := range s.files {
		if f.fd >= 0 {
			syscall.Close(f.fd)
		}
	}
	for _, f := range s.freqs {
		syscall.Close(f.fd)
	}
}

// sample writes one record per file, all with the same time: that of the
// moment before /proc/stat is read.
func (s *sampler) sample(w *wire.Writer) {
	now := Now()
	s.out = s.out[:0]
	n := 0
	for i := range s.files {
		f := &s.files[i]
		from := len(s.out)
		if s.read(f); len(s.out) > from {
			// When out grows, what was taken before stays where it was.
			s.records[n] = wire.Record{Type: f.typ, MonoNS: now, Body: s.out[from:]}
			n++
		}
	}
	from := len(s.out)
	if s.readFreqs(); len(s.out) > from {
		s.records[n] = wire.Record{Type: wire.TypeFreq, MonoNS: now, Body: s.out[from:]}
		n++
	}
	w.WriteAll(s.records[:n]) // a full spool is noted at the end
}

// read appends the wanted lines of f to out.
func (s *sampler) read(f *source) {
	if f.fd < 0 || rewind(f.fd) != 0 {
		return
	}
	c := cutter{source: f, stat: f.typ == wire.TypeStat}
	for off := 0; !c.done; {
		chunk := s.chunk
		// The kernel formats as many lines as the buffer holds: asking for no
		// more than is wanted spares it, and us, most of /proc/vmstat.
		if f.last != nil && off == 0 && f.need > 0 && f.need < len(chunk) {
			chunk = chunk[:f.need]
		}
		n, err := readNow(f.fd, chunk)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return
		}
		s.out = c.cut(s.out, chunk[:n])
		off += n
		if c.done {
			f.need = off - n + c.used + 64 // numbers grow
		}
		if f.last == nil && n < len(chunk) {
			return // these files are made in one piece: this was the end
		}
	}
}

// rewind and readNow tell the Go scheduler nothing: these calls never block,
// and its bookkeeping would cost more than they do.
func rewind(fd int) syscall.Errno {
	_, _, e := syscall.RawSyscall(syscall.SYS_LSEEK, uintptr(fd), 0, 0)
	return e
}

func readNow(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), e
}

// cutter keeps the wanted lines of a file that arrives in chunks.
type cutter struct {
	*source
	stat  bool
	begin int  // length of the line so far, while it is undecided
	state byte // what to do with the rest of the line
	blank int  // blanks seen in a kept line of /proc/stat that is cut
	used  int  // bytes of the chunk used when done
	done  bool
	end   bool // the present line is the last wanted one
}

const (
	undecided = iota
	copying
	cutting // copy up to the second blank, then drop: "intr 123 0 0 …"
	dropping
)

// cut appends the wanted bytes of chunk to out.
func (c *cutter) cut(out, chunk []byte) []byte {
	for i := 0; i < len(chunk); {
		if c.state == dropping || c.state == copying {
			n := bytes.IndexByte(chunk[i:], '\n')
			stop := len(chunk)
			if n >= 0 {
				stop = i + n + 1
			}
			if c.state == copying {
				out = append(out, chunk[i:stop]...)
			}
			i = stop
			if n >= 0 {
				c.state, c.begin = undecided, 0
				if c.end {
					c.done, c.used = true, i
					return out
				}
			}
			continue
		}
		b := chunk[i]
		i++
		out = append(out, b)
		if c.state == cutting {
			out = c.cutByte(out, b)
			continue
		}
		c.begin++
		out = c.decide(out, b == '\n')
	}
	return out
}

// cutByte drops what follows the first number of a line of per-interrupt counts.
func (c *cutter) cutByte(out []byte, b byte) []byte {
	switch b {
	case '\n':
		c.state, c.begin = undecided, 0
	case ' ':
		if c.blank++; c.blank == 2 {
			out[len(out)-1] = '\n'
			c.state = dropping
		}
	}
	return out
}

// decide looks at the beginning of a line, which is at the end of out.
func (c *cutter) decide(out []byte, eol bool) []byte {
	head := out[len(out)-c.begin:]
	switch {
	case c.stat && len(head) == 5:
		c.state = copying
		if string(head) == "intr " {
			c.state, c.blank = cutting, 1
		}
	case c.keep == nil && !c.stat:
		c.state = copying
	case c.keep != nil && !eol:
		return c.match(out, head)
	}
	if eol {
		if c.keep != nil {
			out = out[:len(out)-c.begin]
		}
		c.state, c.begin = undecided, 0
	}
	return out
}

func (c *cutter) match(out, head []byte) []byte {
	possible := false
	for _, k := range c.keep {
		if len(head) < len(k) {
			possible = possible || bytes.HasPrefix(k, head)
		} else if bytes.Equal(head, k) {
			c.state = copying
			c.end = c.last != nil && bytes.Equal(k, c.last)
			return out
		}
	}
	if !possible {
		out = out[:len(out)-c.begin]
		c.state = dropping
	}
	return out
}
