package orchestrator

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/agentbin"
)

const (
	agentKB     = 3 << 10         // room for the agent, its file and what it writes meanwhile
	installKB   = 4 << 10         // beside a kernel's files, where a boot method puts them
	clockWorth  = 2 * time.Minute // an error of the target's clock that is worth a word
	clockMatter = 24 * time.Hour  // and one that make(1) stumbles over
)

//go:embed preflight.sh
var preflightScript string

// folders is a boot method that puts the kernel's files on the target.
type folders interface{ Folders() []string }

// seen is what the script says of a machine.
type seen struct {
	clock   time.Time
	tools   []string
	folders []space
	dirs    []space // writable
	mounts  [][3]string
	whole   bool
}

// space is a folder with its free room in KiB, -1 when that is not told.
type space struct {
	path string
	kb   int64
}

// reach logs in, asks the machine what it has, and the power driver how it stands.
func (p *Preflight) reach(ctx context.Context, l plan.Lane, t *config.Target) []Finding {
	begin := p.Now()
	var state string
	var err error
	var power sync.WaitGroup
	power.Go(func() { state, err = p.state(ctx, t) })
	conn, dialErr := p.Dial(ctx, t.SSH, targets.DialOptions{})
	took := p.Now().Sub(begin)
	power.Wait()
	if dialErr != nil {
		return p.notReached(t, dialErr, state, err)
	}
	defer conn.Close()
	out := []Finding{{Target: t.Name, Level: Fine, Text: "reached in " + took.Round(10*time.Millisecond).String()}}
	switch {
	case err != nil:
		out = append(out, Finding{Target: t.Name, Level: Unsafe, Text: "its power driver does not answer: " + err.Error(), Do: "correct its power block, or look at the device; try it:", Command: p.cmd("power %s on", t.Name)})
	case state == "off":
		out = append(out, Finding{Target: t.Name, Level: Unsafe, Text: "its power driver says off, and yet it answers: the outlet is another machine's", Do: "correct outlet in its power block; who goes dark, shows:", Command: p.cmd("target doctor %s", t.Name)})
	case state == "on":
		out = append(out, Finding{Target: t.Name, Level: Fine, Text: "power on"})
	}
	if p.Quiet {
		return append(out, p.answers(ctx, conn, t)...)
	}
	s, err := p.survey(ctx, conn, l, t)
	if err != nil {
		return append(out, Finding{Target: t.Name, Level: Unsafe, Text: "logged in, but a command fails: " + err.Error(), Do: "its login must be able to run /bin/sh; try it:", Command: p.cmd("exec %s -- true", t.Name)})
	}
	out = append(out, p.clock(s, t, l)...)
	out = append(out, p.place(s, l, t)...)
	out = append(out, p.room(s, l, t)...)
	return append(out, p.missingTools(s, l, t)...)
}

// answers runs the smallest command.
func (p *Preflight) answers(ctx context.Context, conn targets.Conn, t *config.Target) []Finding {
	exit, err := conn.Run(ctx, targets.Cmd{Argv: []string{"true"}})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("true %s", exit)
	}
	if err != nil {
		return []Finding{{Target: t.Name, Level: Unsafe, Text: "logged in, but a command fails: " + err.Error(), Do: "its login must be able to run commands; try it:", Command: p.cmd("exec %s -- true", t.Name)}}
	}
	return nil
}

// state asks the power driver where that switches nothing: "on", "off", "" for a
// driver that does not tell.
func (p *Preflight) state(ctx context.Context, t *config.Target) (string, error) {
	d, ok := t.Power.(stateful)
	if !ok {
		return "", nil
	}
	on, err := d.State(ctx)
	switch {
	case errors.Is(err, targets.ErrNoState):
		return "", nil
	case err != nil:
		return "", err
	case on:
		return "on", nil
	}
	return "off", nil
}

// notReached says what that means for the night: a power driver may help.
func (p *Preflight) notReached(t *config.Target, err error, state string, powerErr error) []Finding {
	f := Finding{Target: t.Name, Level: Unsafe, Text: "not reached: " + err.Error(), Do: "is it on, and are host, user and key in its ssh block right? Try it:", Command: p.cmd("-v exec %s -- true", t.Name)}
	var link *targets.LinkError
	refused := errors.As(err, &link) && link.Refused
	switch {
	case powerErr != nil:
		f.Text += "; and its power driver does not answer: " + powerErr.Error()
	case t.Power != nil && !refused:
		f.Level = Warning
		f.Text += " (its power driver will be tried)"
		if state != "" {
			f.Text = strings.TrimSuffix(f.Text, ")") + ": the outlet is " + state + ")"
		}
	}
	return []Finding{f}
}

// survey runs the script.
func (p *Preflight) survey(ctx context.Context, conn targets.Conn, l plan.Lane, t *config.Target) (seen, error) {
	argv := []string{"/bin/sh", "-s", "--"}
	for _, w := range p.wanted(l, t) {
		argv = append(argv, w.name)
	}
	argv = append(argv, "--")
	if b, ok := t.Boot.(folders); ok {
		argv = append(argv, b.Folders()...)
	}
	var out, errs bytes.Buffer
	exit, err := conn.Run(ctx, targets.Cmd{Argv: argv, Stdin: strings.NewReader(preflightScript), Stdout: &out, Stderr: &errs})
	if err != nil {
		return seen{}, err
	}
	s := parseSeen(out.String())
	if !exit.OK() || !s.whole {
		first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return s, fmt.Errorf("/bin/sh %s: %.200s", exit, first)
	}
	return s, nil
}

// wanted are the tools that this machine needs, as a target or as somebody's peer.
func (p *Preflight) wanted(l plan.Lane, t *config.Target) []wantedTool {
	return p.tools("", func(of plan.Lane, s *config.Scenario, tool workloads.Tool) bool {
		return of.Target == t.Name || tool.Peer && s.Common.Peer == "target."+t.Name
	})
}

func parseSeen(text string) seen {
	var s seen
	var last *[]space
	for _, ln := range strings.Split(text, "\n") {
		key, rest, _ := strings.Cut(ln, " ")
		switch key {
		case "clock":
			if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
				s.clock = time.Unix(n, 0)
			}
		case "tool":
			s.tools = append(s.tools, rest)
		case "folder":
			s.folders, last = append(s.folders, space{rest, -1}), &s.folders
		case "dir":
			s.dirs, last = append(s.dirs, space{rest, -1}), &s.dirs
		case "df":
			// "device blocks used available 12% /dir"; ramfs claims to have 0 blocks.
			if f := strings.Fields(rest); last != nil && len(f) >= 6 && f[1] != "0" {
				if n, err := strconv.ParseInt(f[3], 10, 64); err == nil {
					(*last)[len(*last)-1].kb = n
				}
			}
		case "mount":
			if f := strings.Fields(rest); len(f) == 3 {
				s.mounts = append(s.mounts, [3]string{f[0], f[1], f[2]})
			}
		case "done":
			s.whole = true
		}
	}
	return s
}

// noexec says that programs may not be started from dir.
func (s seen) noexec(dir string) bool {
	best, opts := "", ""
	for _, m := range s.mounts {
		if (m[1] == "/" || dir == m[1] || strings.HasPrefix(dir, m[1]+"/")) && len(m[1]) >= len(best) {
			best, opts = m[1], m[2]
		}
	}
	return slices.Contains(strings.Split(opts, ","), "noexec")
}

// clock compares the target's clock with ours. Nothing is measured by it, but make
// builds by it, and the target's own logs carry it.
func (p *Preflight) clock(s seen, t *config.Target, l plan.Lane) []Finding {
	if s.clock.IsZero() {
		return nil
	}
	off := s.clock.Sub(p.Now())
	way := "ahead"
	if off < 0 {
		off, way = -off, "behind"
	}
	if off < clockWorth {
		return nil
	}
	f := Finding{Target: t.Name, Level: Fine, Text: fmt.Sprintf("clock %s %s", days(off), way)}
	if builds := slices.ContainsFunc(p.scenarios(l), func(n named) bool { return strings.HasPrefix(n.id, "kernbench.") }); builds && off > clockMatter {
		f.Level, f.Do, f.Command = Warning, "make builds by file times, so set it:", p.cmd("exec %s -- date -s @%d", t.Name, p.Now().Unix())
	}
	return []Finding{f}
}

// place says where the agent will go.
func (p *Preflight) place(s seen, l plan.Lane, t *config.Target) []Finding {
	if len(l.Boots) == 0 {
		return nil // a peer, which may do without
	}
	var whys []string
	small := ""
	for _, d := range s.dirs {
		switch {
		case d.kb >= 0 && d.kb < 64:
			whys = append(whys, fmt.Sprintf("%s has %d kB free", d.path, d.kb))
		case s.noexec(d.path):
			whys = append(whys, d.path+" is mounted noexec")
			small = d.path
		case d.kb >= 0 && d.kb < agentKB:
			whys = append(whys, fmt.Sprintf("%s has %d kB free, and the Go agent needs %d", d.path, d.kb, agentKB))
			small = d.path
		case t.Agent == "shell":
			return []Finding{{Target: t.Name, Level: Fine, Text: "shell agent in " + d.path}}
		case t.Arch != "" && !slices.Contains(agentbin.Arches(), t.Arch):
			return []Finding{{Target: t.Name, Level: Fine, Text: "shell agent in " + d.path + " (none in Go for " + t.Arch + ")"}}
		default:
			return []Finding{{Target: t.Name, Level: Fine, Text: "agent fits into " + d.path}}
		}
	}
	why := strings.Join(whys, "; ")
	if why == "" {
		why = "no folder is writable"
	}
	needsGo := t.Agent == "go" || slices.ContainsFunc(p.scenarios(l), func(n named) bool { return n.Run.Needs().GoAgent != "" })
	if small != "" && !needsGo {
		return []Finding{{Target: t.Name, Level: Warning, Text: "only the shell agent has a place: " + why, Do: `agent = "shell" says that it is meant so; or make room in /tmp there`}}
	}
	return []Finding{{Target: t.Name, Level: p.hopeless(t), Text: "the agent has no place there: " + why, Do: "make room in /tmp or /dev/shm, or mount a tmpfs there with exec; look:", Command: p.cmd("exec %s -- df", t.Name)}}
}

// room compares the folder for the kernels' files with the largest kernel.
func (p *Preflight) room(s seen, l plan.Lane, t *config.Target) []Finding {
	var need int64
	name := ""
	for _, k := range laneKernels(p.Lab, l, t) {
		n := int64(0)
		for _, f := range imageFiles(k.Image) {
			if st, err := os.Stat(f); err == nil {
				n += st.Size() >> 10
			}
		}
		if n > need {
			need, name = n, k.Name
		}
	}
	if need == 0 || len(s.folders) == 0 {
		return nil
	}
	best := s.folders[0]
	for _, f := range s.folders {
		if f.kb < 0 || f.kb > best.kb && best.kb >= 0 {
			best = f
		}
	}
	if best.kb >= 0 && best.kb < need+installKB {
		return []Finding{{Target: t.Name, Level: Warning, Text: fmt.Sprintf("%s has %d kB free there, and kernel %s needs %d kB: it fits only where older kernels of ours make room", best.path, best.kb, name, need+installKB),
			Do: "make room there; look:", Command: p.cmd("exec %s -- df %s", t.Name, best.path)}}
	}
	return []Finding{{Target: t.Name, Level: Fine, Text: "kernels fit into " + best.path}}
}

// missingTools are what workloads look for in vain.
func (p *Preflight) missingTools(s seen, l plan.Lane, t *config.Target) []Finding {
	var out []Finding
	for _, w := range p.wanted(l, t) {
		if slices.Contains(s.tools, w.name) {
			continue
		}
		out = append(out, Finding{Target: t.Name, Level: p.hopeless(t), Text: fmt.Sprintf("%s is not there, and %s needs it", w.name, w.cell),
			Do: "install it on the target, or leave that workload out with --workload; look:", Command: p.cmd("exec %s -- which %s", t.Name, w.name)})
	}
	return out
}

// hopeless is the level of what the running system lacks: a kernel that comes with
// its own userland may bring it.
func (p *Preflight) hopeless(t *config.Target) Level {
	if tr := targets.TraitsOf(t.Boot); (tr.Running || tr.OnlyOnce) && t.BootKind != "sysupgrade" {
		return Unsafe
	}
	return Warning
}
