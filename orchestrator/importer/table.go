package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// role is what a column of a table says.
type role int

const (
	ignored role = iota
	kernelCol
	schedulerCol
	variantCol
	targetCol
	workloadCol
	scenarioCol
	taskCol
	repeatCol
	bootCol
	orderCol
	metricCol
	valueCol
	unitCol
	betterCol
	figureCol // a metric of its own
	roles
)

// roleOf is the role of a column by its name, in any case.
func roleOf(name string) role {
	switch strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name)) {
	case "kernel":
		return kernelCol
	case "scheduler", "sched":
		return schedulerCol
	case "variant":
		return variantCol
	case "target", "machine", "device":
		return targetCol
	case "workload":
		return workloadCol
	case "scenario":
		return scenarioCol
	case "task":
		return taskCol
	case "repeat", "rep", "trial", "run":
		return repeatCol
	case "boot", "boot_id":
		return bootCol
	case "order", "seq", "sequence":
		return orderCol
	case "metric":
		return metricCol
	case "value":
		return valueCol
	case "unit":
		return unitCol
	case "better", "direction":
		return betterCol
	}
	return figureCol
}

// table reads one file.
type table struct {
	m    *Import
	file int
	head []string
	role []role
	at   [roles]int // column of a role, -1 without
	long bool
	// several: one kernel's name stands for several variants.
	several bool

	metric  []workloads.Metric // of each column that is a figure
	cells   map[results.Cell]int32
	tasks   map[taskKey]int32 // trial that a task's row belongs to
	rows    map[rowKey]int32  // line of a trial that was given with its repeat
	count   map[longKey]int   // of a metric in a cell, where no column counts
	zero    bool              // a repeat of 0 was seen: they are counted from 0
	repeats bool
	text    map[int]error // columns that hold words, and the first of them
	had     map[int]bool  // columns with a number
	spread  bool          // a figure has another behind "±"
	comma   string        // the first figure with a decimal comma
	point   error         // about the first whose point may part thousands
}

// taskKey is the trial that rows of several tasks, or of several metrics, are of.
type taskKey struct {
	cell, boot int32
	repeat     int
}

type rowKey struct{ cell, boot, repeat int32 }

type longKey struct {
	cell, boot int32
	metric     string
}

// readTable reads rows of figures under a line of names: tab, comma, semicolon,
// bars or blanks between them.
func readTable(m *Import, file int, text string) error {
	t := &table{m: m, file: file, cells: map[results.Cell]int32{}, tasks: map[taskKey]int32{}, rows: map[rowKey]int32{},
		count: map[longKey]int{}, text: map[int]error{}, had: map[int]bool{}}
	if !strings.HasSuffix(text, "\n") {
		m.say("%s does not end with a line end: is its last row whole?", shown(m.files[file].Name))
	}
	first := len(m.trials)
	next, outside := rowsOf(text)
	for {
		f, line, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if t.head == nil {
			if err = t.header(f); err == nil {
				t.several = t.sameNames(text)
			}
		} else {
			err = t.row(f, line)
		}
		if err != nil {
			return atLine{line, err}
		}
	}
	if t.head == nil {
		return errors.New("it has no line of column names")
	}
	if err := cmp.Or(t.mixed(), t.twoMarks()); err != nil {
		return err
	}
	if t.zero {
		for i := range m.trials[first:] {
			m.trials[first+i].repeat++
		}
	}
	m.steps(first)
	t.strangers()
	if t.spread {
		m.say("%s: what stands behind ± is not read, for the table does not say what it is of", shown(m.files[file].Name))
	}
	if outside > 0 {
		m.say("%s: not read, since outside the table: %s", shown(m.files[file].Name), plural.Of(outside, "line"))
	}
	return nil
}

func (t *table) header(f []string) error {
	for i := range t.at {
		t.at[i] = -1
	}
	for i, name := range f {
		name = strings.TrimSpace(name)
		if _, _, err := number(name); err == nil {
			return fmt.Errorf("the first line must name the columns, but has the number %s", quote(name))
		}
		if slices.ContainsFunc(t.head, func(s string) bool { return strings.EqualFold(s, name) }) && name != "" {
			return fmt.Errorf("two columns are named %s", quote(name))
		}
		r := roleOf(name)
		if name == "" {
			r = ignored
		}
		if r != figureCol && r != ignored && t.at[r] >= 0 {
			return fmt.Errorf("columns %s and %s say the same thing", quote(t.head[t.at[r]]), quote(name))
		}
		t.at[r] = i
		t.head, t.role = append(t.head, strings.Clone(name)), append(t.role, r)
	}
	t.long = t.at[metricCol] >= 0 && t.at[valueCol] >= 0
	if (t.at[metricCol] >= 0) != (t.at[valueCol] >= 0) {
		return errors.New("a table in long form has both columns metric and value, this one has only one of them")
	}
	t.metric = make([]workloads.Metric, len(t.head))
	for i, name := range t.head {
		switch {
		case t.role[i] != figureCol:
		case t.long:
			t.role[i] = ignored
		default:
			t.metric[i] = metricByName(name)
		}
	}
	t.m.column = t.m.column || t.at[bootCol] >= 0
	return t.named()
}

// named checks that the table or the command line says the kernel, and one of
// them only.
func (t *table) named() error {
	given := t.m.files[t.file].Kernel
	has := cmp.Or(t.at[kernelCol]+1, t.at[variantCol]+1, t.at[schedulerCol]+1) > 0
	switch {
	case has && given != "":
		return fmt.Errorf("the table itself says the kernel: take %s= away", given)
	case !has && given == "" && t.m.o.Kernel == "":
		return errors.New("no column kernel, scheduler or variant: write KERNEL=FILE, or --kernel")
	}
	return nil
}

// mixed refuses columns that hold both numbers and text, for which of them is
// wrong cannot be said here, and tables without any number.
func (t *table) mixed() error {
	for _, i := range slices.Sorted(maps.Keys(t.text)) {
		if t.had[i] || len(t.had) == 0 {
			return t.text[i]
		}
	}
	return nil
}

// strangers mentions columns that are not read.
func (t *table) strangers() {
	var names []string
	for i, name := range t.head {
		if name != "" && (t.role[i] == ignored || t.role[i] == figureCol && !t.had[i] && t.text[i] != nil) {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) > 0 {
		t.m.say("%s: not read: columns %s", shown(t.m.files[t.file].Name), strings.Join(names, ", "))
	}
}
