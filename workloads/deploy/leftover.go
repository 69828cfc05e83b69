package deploy

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

//go:embed leftover.sh
var leftoverScript string

// Waiting times for the end of leftovers.
const (
	sweepTime    = 30 * time.Second
	leftoverTime = 10 * time.Second // more for each: TERM, KILL, and its agent
)

// mostWords bounds a command in a note, in bytes.
const mostWords = 160

// leftover is a spool of a run that is over, or an agent's file that nobody uses.
type leftover struct {
	path string
	how  string // word of leftover.sh, "" = a file only
}

// EndLeftovers ends what earlier runs left running on the machine behind conn and
// removes its files, as Install does, and needs no agent there. Of the options
// it heeds Instance, Spare, Bare, Note and Log. Its error is the link's.
func EndLeftovers(ctx context.Context, conn targets.Conn, o Options) error {
	a := &Agent{o: o.filled(), conn: conn}
	m, err := survey(ctx, conn)
	if err != nil {
		return err
	}
	return a.sweep(ctx, m, "")
}

// leftovers picks from what the survey found what is nobody's any more. On a
// target, which one run has to itself, that is everything which does not belong
// to a living kernsweep of this controller. On a machine that others use too, it
// is what belongs to a kernsweep that has ended; of files that do not say whose
// they are, those that are older than a day and idle.
func (a *Agent) leftovers(m *machine, name string) (found []leftover) {
	uid := m.uid
	if uid == "" { // a device without id(1), and without users
		uid = "0"
	}
	seen := map[string]bool{name: true} // one folder may have two names
	for _, s := range a.o.Spare {
		seen[path.Base(s)] = true
	}
	for _, p := range m.places {
		for _, ln := range p.left {
			age, ln, _ := strings.Cut(ln, " ")
			f := strings.Fields(ln)
			if len(f) < 9 || f[2] != uid { // of others' files nothing is believed
				continue
			}
			file, kind := path.Base(f[len(f)-1]), f[0][0]
			if strings.HasPrefix(file, "kernsweep-agent-") {
				if kind == '-' && !seen[file] && a.agentLeft(file, age == "old") {
					found = append(found, leftover{path: p.dir + "/" + file})
				}
				continue
			}
			for _, end := range []string{".reserve", ".d"} { // what belongs to a spool
				file = strings.TrimSuffix(file, end)
			}
			if how := a.spoolLeft(file, age == "old"); how != "" && !seen[file] && (kind == '-' || kind == 'd') {
				seen[file] = true
				found = append(found, leftover{path: p.dir + "/" + file, how: how})
			}
		}
	}
	return found
}

// spoolLeft is how to treat a spool that is not spared, "" to leave it alone.
func (a *Agent) spoolLeft(file string, old bool) string {
	match := spoolPattern.FindStringSubmatch(file)
	if match == nil {
		return ""
	}
	o, owned := ownerIn(match)
	switch {
	case a.replaces(file): // of the agent that this one replaces
		return "end"
	case owned && o.machine == here():
		if o.gone() {
			return "end"
		}
		return ""
	case a.o.Instance == "":
		return "end"
	case old:
		return "idle"
	}
	return ""
}

// replaces reports whether a spool's name is one of the agent before this one.
func (a *Agent) replaces(name string) bool {
	return slices.ContainsFunc(a.stale, func(s string) bool { return path.Base(s) == name })
}

// agentLeft reports whether an agent's file, not this one's, is to be removed.
func (a *Agent) agentLeft(file string, old bool) bool {
	if o, owned := ownerIn(agentPattern.FindStringSubmatch(file)); owned && o.machine == here() {
		return o.gone()
	}
	return old || a.o.Bare && a.o.Instance == ""
}

// sweep ends and removes leftovers; each is told. An error is the link's.
func (a *Agent) sweep(ctx context.Context, m *machine, name string) error {
	var spools []leftover
	var files []string
	for _, l := range a.leftovers(m, name) {
		if l.how == "" {
			files = append(files, l.path)
		} else {
			spools = append(spools, l)
		}
	}
	if err := a.delete(ctx, files...); err != nil {
		a.o.Note("agents that an earlier kernsweep left stay where they are: " + err.Error())
	}
	return a.endTasks(ctx, spools, func(spool string) string {
		if a.replaces(path.Base(spool)) {
			return "of an attempt that was lost"
		}
		return "of an earlier run"
	})
}

// endTasks ends the tasks behind spools and removes these; whose says for a note
// where a spool comes from. An error is the link's.
func (a *Agent) endTasks(ctx context.Context, spools []leftover, whose func(spool string) string) error {
	if len(spools) == 0 {
		return nil
	}
	argv := []string{"/bin/sh", "-s", "--"}
	for _, l := range spools {
		argv = append(argv, l.how, l.path)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTime+time.Duration(len(spools))*leftoverTime)
	defer cancel()
	var out, errs bytes.Buffer
	exit, err := a.link().Run(ctx, targets.Cmd{Argv: argv, Stdin: strings.NewReader(leftoverScript), Stdout: &out, Stderr: &errs})
	if err != nil {
		return fmt.Errorf("ending what was left running: %w", err)
	}
	if !exit.OK() || !strings.HasSuffix(out.String(), "done\n") {
		a.o.Note(fmt.Sprintf("what was left running may go on: /bin/sh %s: %s", exit, firstLine(errs.String())))
	}
	for ln := range strings.Lines(out.String()) {
		f := strings.SplitN(strings.TrimSpace(ln), " ", 5)
		if n, err := strconv.Atoi(f[0]); err == nil && n > 0 && n <= len(spools) && len(f) > 1 {
			a.tell(spools[n-1].path, whose(spools[n-1].path), f)
		}
	}
	return nil
}

// tell notes what became of one leftover: "NUMBER WHAT[ PID SECONDS ARGV]".
func (a *Agent) tell(spool, whose string, f []string) {
	task := ""
	if len(f) == 5 {
		task = ": " + f[4][:min(len(f[4]), mostWords)] + " (pid " + f[2]
		if s, err := strconv.Atoi(f[3]); err == nil && s >= 0 {
			task += ", begun " + (time.Duration(s) * time.Second).String() + " ago"
		}
		task += ")"
	}
	switch f[1] {
	case "ended":
		a.o.Note("ended a leftover task " + whose + task)
	case "removed":
		a.o.Note("removed the spool of a task " + whose + " that had ended" + task)
	case "stuck":
		a.o.Note("a leftover task " + whose + " CANNOT be ended" + task + ": it is stuck in the kernel, or is another user's; what is measured beside it is doubtful")
	case "alien":
		a.o.Note(spool + " has the name of a spool and is none: left as it is")
	}
}
