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
	"kernsweep/workloads"
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
	return errors.Join(m.journal(ctx, w, laid, ""), w.Close())
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
		}
	}
	state, err := run.State()
	if err != nil {
		return err
	}
	if err := m.agrees(state.Plan); err != nil {
		return err
	}
	laid := m.boots(base{
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
	})
	all := *meta.Imported
	all.Files = append(slices.Clone(all.Files), more.Files...)
	if more.Note != "" {
		all.Note = strings.TrimPrefix(all.Note+"; "+more.Note, "; ")
	}
	meta.Imported = &all
	if err := m.keep(run, more.Files); err != nil {
		return err
	}
	if err := run.WritePlan(m.summary(state.Plan, laid), nil); err != nil {
		return err
	}
	if err := run.SetMeta(meta); err != nil {
		return err
	}
	return m.journal(ctx, w, laid, ": import "+m.o.Format)
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

// summary is the plan's: what the files hold, added to what the run had.
func (m *Import) summary(p results.PlanSummary, laid []*boot) results.PlanSummary {
	if p.Sweep == "" {
		p.Sweep = m.o.Name
		p.Design = results.Design{Order: m.order()}
	}
	p.Metrics = cloneMetrics(p.Metrics)
	for _, c := range m.cells {
		if !slices.ContainsFunc(p.Targets, func(t results.PlannedTarget) bool { return t.Name == c.Target }) {
			p.Targets = append(p.Targets, results.PlannedTarget{Name: c.Target})
		}
	}
	for _, k := range m.kernels() {
		i := slices.IndexFunc(p.Kernels, func(x results.PlannedKernel) bool { return x.Name == k })
		if i < 0 {
			i = len(p.Kernels)
			p.Kernels = append(p.Kernels, results.PlannedKernel{Name: k})
		}
		if s := m.told[k].scheduler; s != "" {
			p.Kernels[i].Scheduler = s
		}
	}
	for i := range p.Targets {
		for _, b := range laid {
			if b.target == p.Targets[i].Name {
				p.Targets[i].Boots++
			}
		}
	}
	m.promise(&p)
	m.plannedCells(&p, laid)
	return p
}

func cloneMetrics(old map[string][]workloads.Metric) map[string][]workloads.Metric {
	out := map[string][]workloads.Metric{}
	for k, v := range old {
		out[k] = slices.Clone(v)
	}
	return out
}

// promise lists the metrics of each workload and scenario, in the files' order.
func (m *Import) promise(p *results.PlanSummary) {
	seen := map[string]map[int32]bool{}
	for i := range m.trials {
		c := m.cells[m.trials[i].cell]
		id := c.Workload + "." + c.Scenario
		if seen[id] == nil {
			seen[id] = map[int32]bool{}
		}
		for _, v := range m.of(&m.trials[i]) {
			if seen[id][v.metric] {
				continue
			}
			seen[id][v.metric] = true
			x := m.metric[v.metric]
			if !slices.ContainsFunc(p.Metrics[id], func(y workloads.Metric) bool { return y.Name == x.Name }) {
				p.Metrics[id] = append(p.Metrics[id], x)
			}
		}
	}
}

// plannedCells are every kernel in every workload and scenario of a target, so
// that what is missing is seen.
func (m *Import) plannedCells(p *results.PlanSummary, laid []*boot) {
	boots, trials := map[results.Cell]map[int]bool{}, map[results.Cell]int{}
	for _, b := range laid {
		for _, i := range b.trials {
			c := m.cells[m.trials[i].cell]
			if boots[c] == nil {
				boots[c] = map[int]bool{}
			}
			boots[c][b.number] = true
			trials[c]++
		}
	}
	at := map[results.Cell]int{}
	for i, c := range p.Cells {
		at[c.Cell] = i
	}
	for _, place := range m.places() {
		for _, k := range m.kernels() {
			c := place
			c.Kernel = k
			i, ok := at[c]
			if !ok {
				i, at[c] = len(p.Cells), len(p.Cells)
				p.Cells = append(p.Cells, results.PlannedCell{Cell: c, Baseline: m.o.Baseline})
			}
			x := &p.Cells[i]
			n := len(boots[c])
			switch {
			case n > 0 && x.Boots > 0:
				x.NA, x.Boots, x.Repeat = "", x.Boots+n, min(x.Repeat, max(1, trials[c]/n))
			case n > 0:
				x.NA, x.Boots, x.Repeat = "", n, max(1, trials[c]/n)
				if trials[c]/n > series {
					x.Repeat = 1
				}
			case x.Boots == 0 && !m.dead(k):
				if x.NA = m.nas[c]; x.NA == "" {
					x.NA = "the imported files have no figure of it"
				}
			}
		}
	}
}

func (m *Import) dead(kernel string) bool {
	return slices.ContainsFunc(m.o.DidNotBoot, func(d Dead) bool { return d.Kernel == kernel })
}

// places are the cells without their kernels, in order.
func (m *Import) places() []results.Cell {
	var out []results.Cell
	for _, c := range m.cells {
		if c.Kernel = ""; !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// journal records everything at once.
func (m *Import) journal(ctx context.Context, w *results.Writer, laid []*boot, why string) error {
	recs := []results.Record{{Kind: results.KindRun, Note: results.NoteBegan + why}}
	var lanes []string
	for _, c := range m.cells {
		if !slices.Contains(lanes, c.Target) {
			lanes = append(lanes, c.Target)
		}
	}
	for _, l := range lanes {
		recs = append(recs, results.Record{Kind: results.KindLane, Lane: l, Note: results.NoteBegan})
		number := 0
		for _, b := range laid {
			if b.target == l {
				recs = append(recs, m.records(b)...)
				number = max(number, b.number)
			}
		}
		for i, d := range m.o.DidNotBoot {
			recs = append(recs, results.Record{Kind: results.KindBoot, Lane: l, Boot: &results.Boot{Number: number + i + 1, Kernel: d.Kernel, Block: 1,
				Outcome: results.BootFailed, Reason: d.Reason,
				Record: targets.BootRecord{Kernel: d.Kernel, Unproven: "imported: as told by whoever imported it"}}})
		}
		recs = append(recs, results.Record{Kind: results.KindLane, Lane: l, Note: results.NoteEnded})
	}
	for _, n := range m.notes {
		recs = append(recs, results.Record{Kind: results.KindNote, Note: n})
	}
	recs = append(recs, results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	_, err := w.AppendAll(ctx, recs)
	return err
}
