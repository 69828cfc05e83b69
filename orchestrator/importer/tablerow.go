package importer

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// row takes one row of the table.
func (t *table) row(f []string, line int) error {
	for len(f) > len(t.head) && strings.TrimSpace(f[len(f)-1]) == "" {
		f = f[:len(f)-1]
	}
	if len(f) != len(t.head) {
		return fmt.Errorf("%d fields where the first line names %d columns: %s", len(f), len(t.head), quote(strings.Join(f, " ")))
	}
	tr, err := t.trial(f, line)
	if err != nil {
		return err
	}
	if t.long {
		return t.longRow(f, tr)
	}
	return t.wideRow(f, tr)
}

// trial is the trial that a row is of, without its figures.
func (t *table) trial(f []string, line int) (trial, error) {
	kernel, err := t.kernel(f)
	if err != nil {
		return trial{}, err
	}
	c := results.Cell{Target: t.field(f, targetCol), Kernel: kernel, Workload: t.field(f, workloadCol), Scenario: t.field(f, scenarioCol)}
	id, ok := t.cells[c]
	if !ok {
		whole, err := t.whole(c)
		if err != nil {
			return trial{}, err
		}
		id = t.m.cell(whole)
		t.cells[cloned(c)] = id
	}
	tr := trial{cell: id, file: int32(t.file), line: int32(line), boot: t.m.name(t.field(f, bootCol))}
	if t.at[bootCol] >= 0 && tr.boot == 0 {
		return tr, fmt.Errorf("column %s is empty in this row", t.head[t.at[bootCol]])
	}
	if s := t.field(f, repeatCol); s != "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return tr, fmt.Errorf("column %s: %s is no number of a trial", t.head[t.at[repeatCol]], quote(s))
		}
		tr.repeat, t.repeats = int32(n), true
		t.zero = t.zero || n == 0
	}
	if s := t.field(f, orderCol); s != "" {
		if tr.order, _, err = number(s); err != nil {
			return tr, fmt.Errorf("column %s: %w", t.head[t.at[orderCol]], err)
		}
		tr.ordered = true
	}
	return tr, nil
}

// whole fills in what the table leaves to the command line.
func (t *table) whole(c results.Cell) (results.Cell, error) {
	c = cloned(c)
	if c.Target == "" {
		c.Target = t.m.o.Target
	}
	if c.Scenario == "" {
		c.Scenario = t.m.o.Scenario
	}
	switch {
	case c.Workload == "":
		c.Workload = t.m.workload
	case !strings.Contains(c.Workload, "."):
		c.Workload = "table." + c.Workload
	}
	for _, s := range []string{c.Target, c.Workload, c.Scenario} {
		if err := nameable(s); err != nil {
			return c, err
		}
	}
	return c, nil
}

func cloned(c results.Cell) results.Cell {
	return results.Cell{Target: strings.Clone(c.Target), Kernel: strings.Clone(c.Kernel), Workload: strings.Clone(c.Workload), Scenario: strings.Clone(c.Scenario)}
}

// wideRow: every column that is a figure is a metric.
func (t *table) wideRow(f []string, tr trial) error {
	task := t.field(f, taskCol)
	from := len(t.m.vals)
	some, lacks := false, "has no figure of it"
	for i, x := range t.metric {
		if t.role[i] != figureCol {
			continue
		}
		v, is, err := t.figure(i, f[i], int(tr.line))
		if err != nil {
			return err
		}
		if !is {
			continue // a column of words
		}
		some = some || v.why == 0
		if v.why != 0 {
			lacks = strings.TrimPrefix(t.m.names[v.why], "the file ")
		}
		if task != "" {
			x.Name = task + "." + x.Name
		}
		if v.metric, err = t.m.metricOf(t.m.cells[tr.cell].Workload, x); err != nil {
			return err
		}
		t.m.vals = append(t.m.vals, v)
	}
	tr.from, tr.to = int32(from), int32(len(t.m.vals))
	if !some {
		t.m.vals = t.m.vals[:from]
		if c := t.m.cells[tr.cell]; t.m.nas[c] == "" {
			t.m.nas[c] = shown(t.m.files[t.file].Name) + " " + lacks
		}
		return nil
	}
	return t.put(tr, task)
}

// put adds the row to the trial it is of: a task's row beside the others of the
// same repeat, any other row as a trial of its own.
func (t *table) put(tr trial, task string) error {
	key := taskKey{cell: tr.cell, boot: tr.boot, repeat: int(tr.repeat)}
	if task != "" {
		if key.repeat == 0 && !t.repeats { // the nth row of a task is of the nth trial
			of := longKey{tr.cell, tr.boot, task}
			t.count[of]++
			key.repeat = t.count[of]
		}
		if i, ok := t.tasks[key]; ok {
			return t.m.join(int(i), tr)
		}
		t.tasks[key] = int32(len(t.m.trials))
	} else if t.at[repeatCol] >= 0 {
		k := rowKey{tr.cell, tr.boot, tr.repeat}
		if was, ok := t.rows[k]; ok {
			return fmt.Errorf("this trial stands on line %d already: the same kernel, scenario, boot and %s %d", was, t.head[t.at[repeatCol]], tr.repeat)
		}
		t.rows[k] = tr.line
	}
	t.m.trials = append(t.m.trials, tr)
	return nil
}

// join moves the values of a row to the trial they belong to.
func (m *Import) join(i int, tr trial) error {
	t := &m.trials[i]
	for _, v := range m.of(&tr) {
		for _, w := range m.of(t) {
			if v.metric == w.metric {
				return fmt.Errorf("%s of this trial stands on line %d already", m.metric[v.metric].Name, t.line)
			}
		}
	}
	if t.to != tr.from {
		moved := append(append([]val(nil), m.of(t)...), m.of(&tr)...)
		t.from = int32(len(m.vals))
		m.vals = append(m.vals, moved...)
	}
	t.to = int32(len(m.vals))
	return nil
}

// longRow: the row is one value of one metric.
func (t *table) longRow(f []string, tr trial) error {
	name, unit := t.field(f, metricCol), t.field(f, unitCol)
	if err := nameable(name); err != nil {
		return fmt.Errorf("the metric's name: %w", err)
	}
	if task := t.field(f, taskCol); task != "" {
		name = task + "." + name
	}
	x := metricByName(name)
	if t.at[unitCol] >= 0 {
		x = workloads.Metric{Name: name, Unit: unit, Better: direction(name, unit)}
	}
	if s := t.field(f, betterCol); s != "" {
		d, err := Direction(s)
		if err != nil {
			return err
		}
		x.Better = d
	}
	x.Name, x.Unit = strings.Clone(x.Name), strings.Clone(x.Unit)
	v, _, err := t.figure(t.at[valueCol], f[t.at[valueCol]], int(tr.line))
	if err != nil {
		return err
	}
	if v.metric, err = t.m.metricOf(t.m.cells[tr.cell].Workload, x); err != nil {
		return err
	}
	of := longKey{tr.cell, tr.boot, x.Name}
	if tr.repeat == 0 && !t.repeats {
		t.count[of]++
		tr.repeat = int32(t.count[of])
	}
	tr.from = int32(len(t.m.vals))
	t.m.vals = append(t.m.vals, v)
	tr.to = int32(len(t.m.vals))
	key := taskKey{cell: tr.cell, boot: tr.boot, repeat: int(tr.repeat)}
	if i, ok := t.tasks[key]; ok {
		return t.m.join(int(i), tr)
	}
	t.tasks[key] = int32(len(t.m.trials))
	t.m.trials = append(t.m.trials, tr)
	return nil
}

// figure reads a cell; is says that it holds a number, or nothing.
func (t *table) figure(column int, s string, line int) (v val, is bool, err error) {
	s = strings.TrimSpace(s)
	if why := absent(s); why != "" {
		return val{why: t.m.name(why)}, true, nil
	}
	if strings.Contains(s, "±") || strings.Contains(s, "+/-") || strings.Contains(s, "+-") {
		if g := spread.FindStringSubmatch(s); g != nil {
			s, t.spread = g[1], true
		}
	}
	t.separators(s, line)
	x, step, err := number(s)
	if errors.Is(err, errWord) && t.role[column] == figureCol {
		if t.text[column] == nil {
			t.text[column] = atLine{line, fmt.Errorf("column %s: %w", t.head[column], err)}
		}
		return val{}, false, nil
	}
	if err != nil {
		return val{}, false, fmt.Errorf("column %s: %w", t.head[column], err)
	}
	t.had[column] = true
	return val{v: x, res: step}, true, nil
}

// spread is a figure with something behind it.
var spread = regexp.MustCompile(`^(.*\d%?)\s*(?:±|\+/-|\+-)\s*[\d.,]+\s*%?$`)

// thousands is a number whose point may be a thousands separator.
var thousands = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}\.\d{3}$`)

// separators keeps the first decimal comma, and the first point that could be no
// decimal one beside it.
func (t *table) separators(s string, line int) {
	if t.comma == "" && strings.Contains(s, ",") {
		if _, _, err := number(s); err == nil {
			t.comma = fmt.Sprintf("%s on line %d", quote(s), line)
		}
	}
	if t.point == nil && len(s) > 4 && len(s) < 10 && thousands.MatchString(s) {
		t.point = atLine{line, fmt.Errorf("%s is ambiguous: its point may be a decimal or a thousands separator", quote(s))}
	}
}

// twoMarks refuses a table with decimal commas and with points that may
// be separators of thousands.
func (t *table) twoMarks() error {
	if t.comma == "" || t.point == nil {
		return nil
	}
	return fmt.Errorf("%w, for %s has a decimal comma", t.point, t.comma)
}
