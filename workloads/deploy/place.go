package deploy

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"

	"kernsweep/targets"
)

//go:embed place.sh
var placeScript string

// machine is what the target says about room, tools and places.
type machine struct {
	uid, release, uname, home string
	memKB                     map[string]int64
	mounts                    []mount
	tools                     map[string]bool
	places                    []place
}

type mount struct{ fstype, dir, opts string }

// place is a writable directory.
type place struct {
	dir      string
	exec     bool
	availKB  int64 // by df; -1 when df says nothing useful
	inMemory bool
	have     []string // ls -ln lines of agent files that lie there
	left     []string // "new" or "old" (over a day) and the ls -ln line of files of any kernsweep
}

// survey runs place.sh; names are agent files to look for, without the user's
// number.
func survey(ctx context.Context, conn targets.Conn, names ...string) (*machine, error) {
	var out, errs bytes.Buffer
	exit, err := conn.Run(ctx, targets.Cmd{Argv: append([]string{"/bin/sh", "-s", "--"}, names...),
		Stdin: strings.NewReader(placeScript), Stdout: &out, Stderr: &errs})
	if err != nil {
		return nil, err
	}
	m := parseMachine(out.String())
	if !exit.OK() || !strings.HasSuffix(out.String(), "done\n") {
		return nil, fmt.Errorf("looking for a place for the agent: /bin/sh %s: %s", exit, firstLine(errs.String()))
	}
	return m, nil
}

func parseMachine(text string) *machine {
	m := &machine{memKB: map[string]int64{}, tools: map[string]bool{}}
	for _, ln := range strings.Split(text, "\n") {
		key, rest, _ := strings.Cut(ln, " ")
		switch key {
		case "uid":
			m.uid = rest
		case "release":
			m.release = rest
		case "machine":
			m.uname = rest
		case "home":
			m.home = rest
		case "mem":
			name, kb, _ := strings.Cut(rest, ": ")
			if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
				m.memKB[name] = n
			}
		case "mount":
			if f := strings.Fields(rest); len(f) == 3 {
				m.mounts = append(m.mounts, mount{f[0], f[1], f[2]})
			}
		case "tool":
			m.tools[rest] = true
		case "dir":
			exe, dir, _ := strings.Cut(rest, " ")
			m.places = append(m.places, place{dir: dir, exec: exe == "yes", availKB: -1})
		case "df", "have", "left":
			if n := len(m.places); n > 0 {
				m.places[n-1].add(key, rest)
			}
		}
	}
	for i := range m.places {
		m.places[i].inMemory = m.inMemory(m.places[i].dir, 0)
	}
	return m
}

// ours is the name that survey looked for: name with the user's number.
func (m *machine) ours(name string) string {
	if m.uid == "" {
		return name
	}
	return name + "-" + m.uid
}

// foreign reports whether something that belongs to another user has the
// agent's name there.
func (p *place) foreign(uid string) bool {
	for _, ln := range p.have {
		if f := strings.Fields(ln); len(f) > 2 && uid != "" && f[2] != uid {
			return true
		}
	}
	return false
}

func (p *place) add(key, rest string) {
	switch key {
	case "have":
		p.have = append(p.have, rest)
		return
	case "left":
		p.left = append(p.left, rest)
		return
	}
	// "device blocks used available 12% /dir"; ramfs claims to have 0 blocks.
	f := strings.Fields(rest)
	if len(f) < 6 {
		return
	}
	blocks, err := strconv.ParseInt(f[1], 10, 64)
	avail, err2 := strconv.ParseInt(f[3], 10, 64)
	if err == nil && err2 == nil && blocks > 0 {
		p.availKB = avail
	}
}

// inMemory reports whether dir lies in RAM: tmpfs, ramfs, or an overlay whose
// upper layer does.
func (m *machine) inMemory(dir string, depth int) bool {
	var best mount
	for _, mt := range m.mounts {
		inside := mt.dir == "/" || dir == mt.dir || strings.HasPrefix(dir, mt.dir+"/")
		if inside && len(mt.dir) >= len(best.dir) {
			best = mt // a later mount hides an earlier one
		}
	}
	switch best.fstype {
	case "tmpfs", "ramfs", "rootfs", "devtmpfs":
		return true
	case "overlay", "overlayfs":
		for _, o := range strings.Split(best.opts, ",") {
			if up, ok := strings.CutPrefix(o, "upperdir="); ok && depth < 4 && path.IsAbs(up) && up != dir {
				return m.inMemory(up, depth+1)
			}
		}
	}
	return false
}

// freeMemKB is what programs can still get; without MemAvailable (before Linux
// 3.14) it is estimated. -1: unknown.
func (m *machine) freeMemKB() int64 {
	if n, ok := m.memKB["MemAvailable"]; ok {
		return n
	}
	n, ok := m.memKB["MemFree"]
	if !ok {
		return -1
	}
	return n + (m.memKB["Buffers"]+m.memKB["Cached"])/2
}

// Room asked for beside the file itself, in kB.
const (
	runKB   = 2 << 10 // the agent's memory while it runs, its file not counted
	spareKB = 1 << 10 // for everybody else
)

// choose takes the first place that is executable (when needed) and has room
// for kb; why lists what was wrong with the others.
func (m *machine) choose(kb int64, needExec bool) (p place, why string) {
	var whys []string
	free := m.freeMemKB()
	for _, p := range m.places {
		memory := int64(0)
		if needExec {
			memory = runKB
		}
		if p.inMemory {
			memory += kb
		}
		switch {
		case needExec && !p.exec:
			whys = append(whys, p.dir+" is mounted noexec")
		case p.foreign(m.uid):
			whys = append(whys, p.dir+": the agent's name is taken by another user's file")
		case p.availKB >= 0 && p.availKB < kb+spareKB:
			whys = append(whys, fmt.Sprintf("%s has %d kB free, and %d are needed", p.dir, p.availKB, kb+spareKB))
		case free >= 0 && free < memory+spareKB:
			whys = append(whys, fmt.Sprintf("%s: %d kB of memory are available, and %d are needed", p.dir, free, memory+spareKB))
		default:
			return p, ""
		}
	}
	if len(whys) == 0 {
		return place{}, "no directory is writable"
	}
	return place{}, strings.Join(whys, "; ")
}

// owned reports whether one of the ls -ln lines shows a file of size bytes that
// belongs to uid and that nobody else may write.
func owned(lines []string, name, uid string, size int64) bool {
	for _, ln := range lines {
		f := strings.Fields(ln)
		if len(f) < 9 || path.Base(f[len(f)-1]) != name || len(f[0]) < 10 {
			continue
		}
		mode := f[0]
		if mode[0] == '-' && mode[5] != 'w' && mode[8] != 'w' && f[2] == uid && f[4] == strconv.FormatInt(size, 10) {
			return true
		}
	}
	return false
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
