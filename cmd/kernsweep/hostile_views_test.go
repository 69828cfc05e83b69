package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// hostileViews are the command lines that show a run, or that need one, by the
// command's path. RUN and TARGET stand for the run's name and its target's.
func hostileViews() map[string][]string {
	return map[string][]string{
		"status":   {"", "--all", "RUN", "--json", "RUN --json"},
		"log":      {"TARGET RUN", "TARGET", "TARGET RUN --console", "TARGET RUN --failed", "TARGET RUN --boot 1", "TARGET RUN --boot 99", "TARGET RUN --kernel x", "TARGET RUN --json", "TARGET RUN --follow", "nobody RUN"},
		"report":   {"RUN", "RUN --secondary --vmstat", "RUN --format md", "RUN --format html", "RUN --format verdicts", "RUN --format csv", "RUN --format comparisons", "RUN --format samples", "RUN --format json", "RUN --format bench", "RUN --format junit"},
		"compare":  {"RUN RUN", "RUN RUN --json", "RUN RUN --common --secondary", "RUN --history 5", "RUN --history 5 --json"},
		"watch":    {"RUN", "RUN --json"},
		"stop":     {"RUN --timeout 1s"},
		"lane":     {"TARGET pause --run RUN", "TARGET skip-kernel --kernel x --run RUN"},
		"open":     {"RUN"},
		"resume":   {"RUN"},
		"rerun":    {"RUN --failed", "RUN --target x"},
		"import":   {"iperf LOG", "table LOG", "kernbench LOG", "time LOG", "vmstat LOG --run RUN"},
		"prune":    {"--dry-run --keep 0", "--keep 0 --dry-run --json"},
		"validate": {""}, "fmt": {"--check", "--diff"}, "plan": {"night", "night --json"}, "run": {"night"},
		"target list": {"", "--json"}, "target add": {"ssh://x@127.0.0.1:1"}, "target probe": {"box"}, "target doctor": {"box"},
		"exec": {"box -- true", "all --json -- true"}, "push": {"box -- LOG /tmp"}, "pull": {"box -- /x ."}, "shell": {"box"}, "boot": {"box cfs"}, "power": {"box off"}, "console": {"box"},
		"notify test": {"night"}, "serve": {"--listen nowhere"}, "man": {"man"}, "version": {"", "--json"},
	}
}

// Nothing to show of a run or a lab, or they have tests of their own.
var hostileNot = map[string]string{
	"": "the overview", "testbeds": "a text of ours", "schema": "a text of ours", "target": "a group", "notify": "a group", "help": "texts of ours", "completion": "a group",
	"completion bash": "scripts of the library", "completion zsh": "scripts of the library", "completion fish": "scripts of the library", "completion powershell": "scripts of the library",
}

// TestHostileViews: whatever texts a run has, every command that shows it is
// inert. A command that is in neither list fails.
func TestHostileViews(t *testing.T) {
	views := hostileViews()
	for i, names := range []bool{false, true, true} {
		held := i == 2
		folder, target := "", "box"
		if names {
			folder, target = hostileFile, "box"+hostile
		}
		t.Chdir(t.TempDir())
		home, err := filepath.Abs("runs")
		if err != nil {
			t.Fatal(err)
		}
		run := hostileRun(t, home, folder, names)
		if held { // by somebody on another machine
			owner, _ := json.Marshal(results.Holder{Owner: hostile, Host: hostile, PID: 1, Start: hostile, BootID: hostile, Since: time.Now()}) // it always has JSON
			if err := os.WriteFile(filepath.Join(run.Dir(), "journal.owner"), owner, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		hostileLab(t)
		// The journal's text went through JSON, which has no invalid UTF-8.
		target = strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(target, "\xff\xc0", "\ufffd\ufffd"), "\x9b", "\ufffd"), "\ufffd")
		for _, c := range all(new(app).root()) {
			path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "kernsweep"), " ")
			list, ok := views[path]
			if !ok && hostileNot[path] == "" {
				t.Errorf("%q shows a run, a lab or a device: say in hostileViews how, or in hostileNot why not", path)
			}
			for _, line := range list {
				args := strings.Fields(path + " " + line)
				for i, w := range args {
					switch w {
					case "RUN":
						args[i] = run.Name()
					case "TARGET":
						args[i] = target
					case "LOG":
						args[i] = hostileFile
					}
				}
				what := strings.TrimSpace(path + " " + line)
				t.Run(what, func(t *testing.T) {
					_, out, errs := apart(t, args...)
					checkInert(t, "standard error", errs)
					if strings.Contains(what, "html") { // where a line's end is a space
						checkInert(t, "standard output", bytes.ReplaceAll(out, []byte("\n"), []byte(" ")))
					} else {
						checkInert(t, "standard output", out)
					}
					checkFormat(t, what, out)
				})
			}
		}
		for _, line := range [][]string{{"report", ""}, {"log", "box", ""}, {"exec", ""}, {"exec", "label:"}, {"report", "2"}, {"rerun", run.Name(), "--target", ""}, {"import", "--run", ""}} {
			_, out, errs := apart(t, append([]string{"__complete"}, line...)...)
			checkInert(t, "completion", append(out, errs...))
			if bytes.Contains(out, []byte("touch")) {
				t.Errorf("%q: a shell would be given %s", line, out)
			}
		}
		hostilePages(t)
		if _, err := os.Stat("ran"); err == nil {
			t.Error("a name was executed")
		}
	}
}

// hostileLab is a configuration with hostile text wherever its language lets it.
func hostileLab(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(strings.ToValidUTF8(strings.ReplaceAll(hostile, "$", "$$"), "?"))
	if err != nil {
		t.Fatal(err)
	}
	lab := `target "box" {
  arch = "amd64"
  labels = [` + string(text) + `]
  ssh {
    host = "127.0.0.1"
    port = 1
    config = "none"
  }
  boot "none" {}
}
kernel "cfs" { release = ` + string(text) + ` }
workload "exec" "work" { command = ["true"] }
sweep "night" {
  kernels = [kernel.cfs]
  matrix {
    targets = [target.box]
    workloads = [workload.exec.work]
  }
}
`
	if err := errors.Join(os.WriteFile("testbeds.hcl", []byte(lab), 0o644), os.WriteFile(hostileFile, []byte(hostile), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// checkFormat reads an output by the rules of its format.
func checkFormat(t *testing.T, what string, out []byte) {
	t.Helper()
	switch {
	case len(out) == 0:
	case strings.Contains(what, "--json"), strings.Contains(what, "format json"):
		d := json.NewDecoder(bytes.NewReader(out))
		for {
			var x any
			if err := d.Decode(&x); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("no JSON: %v", err)
			}
			pasteAll(t, x)
		}
	case strings.Contains(what, "html"):
		if bytes.Contains(out, []byte("<script>alert")) || bytes.Contains(out, []byte("<img src=x")) {
			t.Error("markup of a device is markup")
		}
	case strings.Contains(what, "junit"):
		if err := xml.Unmarshal(out, new(struct {
			XMLName xml.Name
		})); err != nil {
			t.Errorf("no XML: %v", err)
		}
	case strings.Contains(what, "md"):
		out = regexp.MustCompile("(?ms)^ {0,3}```.*?^ {0,3}```$").ReplaceAll(out, nil)
		out = bytes.ReplaceAll(out, []byte(`\<`), nil)
		if bytes.Contains(out, []byte("<script")) || bytes.Contains(out, []byte("<img")) {
			t.Error("markup of a device is markup")
		}
	}
	for _, f := range []string{"csv", "comparisons", "samples"} {
		if strings.Contains(what, "format "+f) && (bytes.Contains(out, []byte(",=cmd")) || bytes.Contains(out, []byte(",\"=cmd"))) {
			t.Error("a spreadsheet would run a cell")
		}
	}
}

// pasteAll gives every command that an output proposes to a shell, where kernsweep
// does nothing: nothing else may happen.
func pasteAll(t *testing.T, x any) {
	t.Helper()
	switch x := x.(type) {
	case []any:
		for _, y := range x {
			pasteAll(t, y)
		}
	case map[string]any:
		for key, y := range x {
			if s, ok := y.(string); ok && (strings.HasSuffix(key, "command") || key == "again") && strings.HasPrefix(s, "kernsweep ") {
				if out, err := exec.Command("bash", "-c", "kernsweep() { true; }; "+s).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("pasted: %s: %v %s", s, err, out)
				}
			}
			pasteAll(t, y)
		}
	}
}
