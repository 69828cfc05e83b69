package story

import (
	"bytes"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// Follower tells a story as it happens: each record, and each line of the console.
// It is not safe for concurrent use.
type Follower struct {
	t       teller
	seq     int // of the last one told
	journal *results.Follower
	console *live.Recording // of the present boot; nil: none
	boot    int
	half    []byte // a line of it that has not ended
}

// Follow goes on after the records that were told.
func Follow(run *results.Run, lane string, told []results.Record) *Follower {
	f := &Follower{journal: run.Follow()}
	f.t = teller{run: run, lane: lane, wanted: true, path: "-"}
	for i := range told {
		f.seq = max(f.seq, told[i].Seq)
		if rec := &told[i]; rec.Lane == lane && rec.Boot != nil {
			f.turn(rec)
		}
	}
	if f.console != nil {
		_, _ = f.console.Next() // told already; an error comes again
	}
	return f
}

// Next gives what is new. The error is the file system's.
func (f *Follower) Next(now time.Time) ([]Line, error) {
	records, err := f.journal.Next()
	if err != nil {
		return nil, err
	}
	f.t.lines = nil
	for i := range records {
		rec := &records[i]
		if rec.Seq <= f.seq {
			continue
		}
		f.seq = rec.Seq
		if rec.Lane != f.t.lane {
			continue
		}
		if err = f.heard(now); err != nil {
			return f.t.lines, err
		}
		if rec.Boot != nil {
			f.turn(rec)
		}
		if k, bad, text := words(rec); text != "" {
			f.t.add(rec.At, k, bad, text)
			if rec.Kind == results.KindJudged && bad && rec.Outcome != results.Skipped && rec.Outcome != results.BootFailed {
				f.t.outputs(rec)
			}
		}
	}
	return f.t.lines, f.heard(now)
}

// turn makes the boot of a record the present one.
func (f *Follower) turn(rec *results.Record) {
	if rec.Boot.Number == f.boot {
		return
	}
	f.boot, f.half = rec.Boot.Number, nil
	f.t.boot = &results.BootState{Lane: f.t.lane, Number: rec.Boot.Number, Asked: rec.At, Result: rec.Boot}
	f.console = live.Console(f.t.run, f.t.lane, rec.Boot.Number)
}

// heard tells what the console said since the last look.
func (f *Follower) heard(now time.Time) error {
	if f.console == nil {
		return nil
	}
	b, err := f.console.Next()
	if err != nil {
		return err
	}
	f.half = append(f.half, b...)
	for {
		l, rest, ok := bytes.Cut(f.half, []byte{'\n'})
		if !ok {
			return nil
		}
		f.half = rest
		if text := live.ConsoleLine(l); text != "" {
			f.t.add(now, Console, false, text)
		}
	}
}
