package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

const keptDir = "imported" // below the run directory

// Meta is what run.json says of a run that is made from the files.
func (m *Import) Meta() *results.Import { return m.meta(0) }

func (m *Import) meta(before int) *results.Import {
	x := &results.Import{Note: m.o.Note}
	for i, f := range m.files {
		sum := sha256.Sum256(f.Data)
		x.Files = append(x.Files, results.ImportedFile{Name: f.Name, SHA256: hex.EncodeToString(sum[:]),
			Kept: keptName(before+i, f.Name), Format: m.o.Format})
	}
	return x
}

// keptName is where a file is kept: a number, and what its name has of plain letters.
func keptName(i int, name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, filepath.Base(name))
	if len(plain) > 80 {
		plain = plain[len(plain)-80:]
	}
	return fmt.Sprintf("%s/%04d-%s", keptDir, i+1, plain)
}

// Write fills a run that was just made (run.json has Meta already): the files,
// the plan's summary, the journal.
func (m *Import) Write(ctx context.Context, run *results.Run, owner string) error {
	if m.Attaches() {
		return errors.New("vmstat with --workload is the activity of trials that are there: name their run with --run")
	}
	laid := m.boots(fresh())
	if err := m.keep(run, run.Meta.Imported.Files); err != nil {
		return err
	}
	if err := run.WritePlan(m.summary(results.PlanSummary{}, laid), nil); err != nil {
		return err
	}
	w, err := run.OpenWriterContext(ctx, owner, nil)
	if err != nil {
		return err
	}
	return errors.Join(m.journal(ctx, w, "", m.laneOf(laid, fresh())), w.Close())
}

// Add adds a session to a run that was imported before. A file that the run
// holds under the same name and with the same bytes is refused.
func (m *Import) Add(ctx context.Context, run *results.Run, owner string) error {
	if run.Meta.Imported == nil {
		return fmt.Errorf("run %s was measured, not imported: what others measured must not mix with it; leave --run away, and compare the two runs", run.Name())
	}
	w, err := run.OpenWriterContext(ctx, owner, nil)
	if err != nil {
		return err
	}
	return errors.Join(m.session(ctx, run, w), w.Close())
}

func (m *Import) session(ctx context.Context, run *results.Run, w *results.Writer) error {
	meta := run.Meta
	more := m.meta(len(meta.Imported.Files))
	for _, f := range more.Files {
		for _, was := range meta.Imported.Files {
			if was.SHA256 == f.SHA256 && was.Name == f.Name {
				return fmt.Errorf("%s is in run %s already: its figures would count twice", shown(f.Name), run.Name())
			}
			if was.SHA256 == f.SHA256 {
				m.say("%s has the bytes of %s, which is in the run: is one measurement counted twice?", shown(f.Name), shown(was.Name))
			}
		}
	}
	state, err := run.State()
	if err != nil {
		return err
	}
	if err := m.agrees(state.Plan); err != nil {
		return err
	}
	b := base{
		number: func(target string) int { return run.NextBoot(target, state.Model) },
		block: func(target, kernel string) int {
			n := 0
			for _, b := range state.Model.Boots {
				if b.Lane == target && b.Result != nil && b.Result.Kernel == kernel {
					n = max(n, b.Result.Block)
				}
			}
			return n
		},
	}
	of, plan := (func(string) []results.Record)(nil), state.Plan
	if m.Attaches() {
		of, err = m.attach(state)
	} else {
		laid := m.boots(b)
		of, plan = m.laneOf(laid, b), m.summary(state.Plan, laid)
	}
	if err != nil {
		return err
	}
	all := *meta.Imported
	all.Files = append(slices.Clone(all.Files), more.Files...)
	if more.Note != "" {
		all.Note = strings.TrimPrefix(all.Note+"; "+more.Note, "; ")
	}
	meta.Imported = &all
	err = m.keep(run, more.Files)
	if err == nil {
		err = run.Change(plan, meta, func() error { return m.journal(ctx, w, ": import "+m.o.Format, of) })
	}
	if err != nil {
		for _, f := range more.Files {
			err = errors.Join(err, os.RemoveAll(filepath.Join(run.Dir(), f.Kept)))
		}
	}
	return err
}

// agrees refuses a metric that the run holds in another unit.
func (m *Import) agrees(p results.PlanSummary) error {
	for _, c := range m.cells {
		for _, was := range p.Metrics[c.Workload+"."+c.Scenario] {
			if i, ok := m.findAt[metricKey{c.Workload, was.Name}]; ok && m.metric[i].Unit != was.Unit {
				return fmt.Errorf("%s of %s is in %q here and in %q in the run: such figures must not meet; give --workload another name",
					was.Name, c.Workload, m.metric[i].Unit, was.Unit)
			}
		}
	}
	return nil
}

// keep writes the files as they were.
func (m *Import) keep(run *results.Run, list []results.ImportedFile) error {
	if err := os.MkdirAll(filepath.Join(run.Dir(), keptDir), 0o755); err != nil {
		return err
	}
	for i, f := range list {
		if err := run.WriteFile(f.Kept, m.files[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// journal records everything at once: what a lane has, between its beginning and
// its end.
func (m *Import) journal(ctx context.Context, w *results.Writer, why string, of func(lane string) []results.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	recs := []results.Record{{Kind: results.KindRun, Note: results.NoteBegan + why}}
	var lanes []string
	for _, c := range m.cells {
		if !slices.Contains(lanes, c.Target) {
			lanes = append(lanes, c.Target)
		}
	}
	for _, l := range lanes {
		list := of(l)
		recs = append(slices.Grow(recs, len(list)+2), results.Record{Kind: results.KindLane, Lane: l, Note: results.NoteBegan})
		recs = append(recs, list...)
		recs = append(recs, results.Record{Kind: results.KindLane, Lane: l, Note: results.NoteEnded})
	}
	for _, n := range m.notes {
		recs = append(recs, results.Record{Kind: results.KindNote, Note: n})
	}
	recs = append(recs, results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	_, err := w.AppendAll(ctx, recs)
	return err
}

// laneOf gives the boots of a lane, those that failed last.
func (m *Import) laneOf(laid []*boot, b base) func(lane string) []results.Record {
	return func(l string) []results.Record {
		n := 0 // at most: a record is large, and they may be many
		for _, x := range laid {
			if x.target == l {
				n += 1 + len(x.trials)
			}
		}
		recs := make([]results.Record, 0, n+len(m.o.DidNotBoot))
		next := b.number(l)
		for _, x := range laid {
			if x.target == l {
				recs = append(recs, m.records(x)...)
				next = max(next, x.number+1)
			}
		}
		for i, d := range m.o.DidNotBoot {
			recs = append(recs, results.Record{Kind: results.KindBoot, Lane: l, Boot: &results.Boot{Number: next + i, Kernel: d.Kernel,
				Block: b.block(l, d.Kernel) + 1, Outcome: results.BootFailed, Reason: d.Reason,
				Record: targets.BootRecord{Kernel: d.Kernel, Unproven: "imported: as told by whoever imported it"}}})
		}
		return recs
	}
}
