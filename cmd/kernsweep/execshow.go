package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"kernsweep/orchestrator/live"
)

// show is how the outputs of several targets reach people.
type show struct {
	execFlags
	ctx     context.Context
	out     io.Writer
	errw    io.Writer
	objects *objects // --json; nil: text
	inert   bool     // standard output is a terminal

	next    int
	waiting map[int]*handed // that --in-order or --fold keep back
}

func (a *app) newShow(ctx context.Context, f execFlags) *show {
	s := &show{execFlags: f, ctx: ctx, out: &oneWriter{w: a.out}, errw: &oneWriter{w: a.err}, inert: onTerminal(a.out), waiting: map[int]*handed{}}
	if a.json {
		s.objects = newObjects(a.out)
	}
	return s
}

// outputs are where a command's output goes, until finish.
func (s *show) outputs(r *handed) (stdout, stderr io.Writer, finish func() error) {
	if !s.stream {
		return r.out, r.errs, func() error { return nil }
	}
	o := &labelled{name: r.t.Name, to: s.out, inert: s.inert}
	e := &labelled{name: r.t.Name, to: s.errw, inert: true}
	return o, e, func() error { return errors.Join(o.Close(), e.Close()) }
}

// ended takes a target that has ended, and shows what can be shown now.
func (s *show) ended(r *handed) error {
	if r.err != nil && s.ctx.Err() == nil {
		fmt.Fprintln(s.errw, "kernsweep: "+live.Safe(atTarget(r.t, r.err).Error()))
	}
	switch {
	case s.stream:
		return nil
	case s.fold:
		s.waiting[r.place] = r
		return nil
	case !s.inOrder:
		return s.block([]*handed{r})
	}
	s.waiting[r.place] = r
	for {
		r, ok := s.waiting[s.next]
		if !ok {
			return nil
		}
		delete(s.waiting, s.next)
		s.next++
		if err := s.block([]*handed{r}); err != nil {
			return err
		}
	}
}

// close shows what was kept back.
func (s *show) close() error {
	var groups [][]*handed
	place := map[string]int{}
	for i := range s.next + len(s.waiting) {
		r := s.waiting[i]
		if r == nil {
			continue
		}
		key, err := s.key(r)
		if err != nil {
			return err
		}
		at, ok := place[key]
		if !ok {
			at = len(groups)
			place[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], r)
	}
	for _, g := range groups {
		if err := s.block(g); err != nil {
			return err
		}
	}
	if s.objects != nil {
		return s.objects.close()
	}
	return nil
}

// key is the same for targets whose outputs and ends are the same.
func (s *show) key(r *handed) (string, error) {
	out, err := r.out.sum()
	errs, e := r.errs.sum()
	return fmt.Sprintf("%s %x %x", r.end(s.ctx), out, errs), errors.Join(err, e)
}

// block shows one output, and whose it is.
func (s *show) block(of []*handed) error {
	for _, r := range of {
		defer r.out.Close()
		defer r.errs.Close()
	}
	r := of[0]
	if s.objects != nil {
		return s.objects.write(s.ctx, r)
	}
	var names []string
	least, most := r.took, r.took
	for _, r := range of {
		names = append(names, r.t.Name)
		least, most = min(least, r.took), max(most, r.took)
	}
	took := fmt.Sprintf("%.2f s", most.Seconds())
	if len(of) > 1 {
		took = fmt.Sprintf("%d targets, %.2f to %.2f s", len(of), least.Seconds(), most.Seconds())
	}
	if _, err := fmt.Fprintf(s.out, "== %s (%s, %s)\n", strings.Join(names, ", "), r.end(s.ctx), took); err != nil {
		return err
	}
	if err := s.copy(r.out); err != nil {
		return err
	}
	label := &labelled{name: listed(names), to: s.errw, inert: true}
	_, err := io.Copy(label, r.errs.reader())
	_ = label.Close() // as io.Copy says
	if r.errs.left > 0 {
		fmt.Fprintf(s.errw, "%s: standard error went on; %d bytes were not kept\n", label.name, r.errs.left)
	}
	return err
}

// copy shows an output line by line. It ends with a line's end, and no line of it
// looks like the head of a block.
func (s *show) copy(o *spool) error {
	in := bufio.NewReaderSize(o.reader(), lineMost)
	w := bufio.NewWriterSize(s.out, lineMost)
	start := true
	for {
		piece, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if start && bytes.HasPrefix(piece, []byte("== ")) {
			_ = w.WriteByte(' ') // Flush gives the error
		}
		line, whole := bytes.CutSuffix(piece, []byte("\n"))
		if s.inert {
			_, _ = w.WriteString(inertLine(string(line)))
		} else {
			_, _ = w.Write(line)
		}
		if whole || errors.Is(err, io.EOF) && (len(line) > 0 || !start) {
			_ = w.WriteByte('\n')
		}
		start = whole
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if o.left > 0 {
		fmt.Fprintf(w, "kernsweep: the output went on; %d bytes were not kept (--stream shows all, kernsweep pull fetches files)\n", o.left)
	}
	return w.Flush()
}

// verdict says, when not all went well, what went how, and gives the exit status.
func (s *show) verdict(all []*handed) error {
	ends := map[string][]string{}
	var statuses []int
	for _, r := range all {
		statuses = append(statuses, r.status(s.ctx))
		ends[r.end(s.ctx)] = append(ends[r.end(s.ctx)], r.t.Name)
	}
	if status := worst(statuses); status != 0 {
		return &statusError{status, errors.New(tally(len(all), ends, "exit 0"))}
	}
	return nil
}
