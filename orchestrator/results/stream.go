package results

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
)

// Reading is State without the records of the journal, which take most of its
// memory: for readers of the model. A whole journal is read straight into the
// model; one with anything odd in it goes the long way of State.
func (r *Run) Reading() (*State, error) {
	p, err := r.ReadPlan(nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r.State() // which says what is wrong, in its order
	}
	if m := r.stream(p, err == nil); m != nil {
		s := &State{Journal: &Journal{id: r.Meta.ID, clean: true}, Plan: p, Model: m}
		r.addBlocks(s)
		return s, nil
	}
	s, err := r.State()
	if err == nil {
		s.Journal.Records, s.Journal.lines = nil, nil
	}
	return s, err
}

// stream is the model of a journal without fault, nil for any other.
func (r *Run) stream(p PlanSummary, planned bool) *Model {
	f, err := openPlain(filepath.Join(r.dir, journalFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	s := scanner{in: bufio.NewReaderSize(f, 256<<10)}
	m := newModel()
	stranger := func(*Record) string { return "" }
	if planned {
		stranger = p.stranger()
	}
	laneSeq := map[string]int{}
	run := r.Meta.ID
	var rec Record
	for seq := 1; ; seq++ {
		size, ended, err := s.next()
		switch {
		case err != nil:
			return nil
		case size == 0 && !ended && seq > 1:
			m.finish()
			return m
		case !ended || size > maxLine || bytes.IndexByte(s.buf, 0) >= 0:
			return nil
		}
		if rec, err = s.dec.line(s.buf); err != nil || rec.Seq != seq || !rec.Kind.known() {
			return nil
		}
		if seq == 1 && (rec.Run == "" || run == "") {
			run = rec.Run // none at all: a journal of format 1, or made from other logs
		}
		if rec.Run != run {
			return nil
		}
		if rec.Lane != "" {
			laneSeq[rec.Lane]++
			if rec.LaneSeq != laneSeq[rec.Lane] {
				return nil
			}
		}
		if stranger(&rec) != "" {
			return nil
		}
		m.add(&rec)
	}
}
