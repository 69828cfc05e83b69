package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// survive is the command line by which argv outlives a logout, with a warning
// where it may not.
func (a *app) survive(argv []string) []string {
	l := logind{root: "/", env: a.env}
	switch l.fate() {
	case fateLives:
		return argv
	case fateScope:
		return append([]string{"systemd-run", "--user", "--scope", "--quiet", "--collect", "--"}, argv...)
	}
	fmt.Fprintln(a.err, "warning: this machine ends everything of a user at logout (KillUserProcesses in logind.conf), also a detached run; "+
		"`loginctl enable-linger` once lets it live")
	return argv
}

// What becomes of a detached process at logout.
type fate int

const (
	fateLives fate = iota
	fateScope      // it lives in a scope of the user's manager
	fateEnds
)

// logind says what systemd-logind does to a session's processes at its end.
type logind struct {
	root string
	env  func(string) (string, bool)
}

func (l logind) fate() fate {
	group, _ := os.ReadFile(filepath.Join(l.root, "proc/self/cgroup"))
	if !strings.Contains(string(group), "/session-") || !l.kills() {
		return fateLives
	}
	_, noTool := exec.LookPath("systemd-run")
	_, hasManager := l.env("XDG_RUNTIME_DIR")
	if _, err := os.Stat(filepath.Join(l.root, "var/lib/systemd/linger", who())); err != nil || noTool != nil || !hasManager {
		return fateEnds // the user's manager ends with the last session
	}
	return fateScope
}

// kills reads KillUserProcesses: the last word counts, files of the same name in
// /etc before those in /run and /usr/lib.
func (l logind) kills() bool {
	// KillExcludeUsers is root where nobody says otherwise.
	return who() != "root" && l.configured()
}

func (l logind) configured() bool {
	files := map[string]string{"logind.conf": filepath.Join(l.root, "etc/systemd/logind.conf")}
	for _, dir := range []string{"usr/lib", "run", "etc"} {
		found, _ := filepath.Glob(filepath.Join(l.root, dir, "systemd/logind.conf.d/*.conf"))
		for _, f := range found {
			files["logind.conf.d/"+filepath.Base(f)] = f
		}
	}
	kills := false
	for _, name := range slices.Sorted(maps.Keys(files)) { // the main file is the first
		text, _ := os.ReadFile(files[name])
		for line := range strings.Lines(string(text)) {
			// The main file shows what is built in as a comment.
			line = strings.TrimPrefix(strings.TrimSpace(line), "#")
			if v, ok := strings.CutPrefix(line, "KillUserProcesses="); ok {
				kills = slices.Contains([]string{"yes", "true", "1", "on"}, strings.ToLower(strings.TrimSpace(v)))
			}
		}
	}
	return kills
}
