package workloads_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kernsweep/workloads"
)

func TestExecLive(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		env := both(t, kind)
		w := &workloads.Exec{Script: `echo "$GREETING" >&2; echo "Time: 0.25"; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`,
			Env: map[string]string{"GREETING": "good $HOME 'day'"}, Primary: "time",
			Sources: map[string]string{"time": `regexp:^Time: (\S+)`, "user": "rusage:user", "elapsed": "rusage:elapsed", "switches": "rusage:nivcsw"},
			Units:   map[string]string{"time": "s"}, Better: map[string]string{"time": "lower"}}
		got, err := once(t, env, w)
		if err != nil {
			t.Fatal(err)
		}
		if v := named(t, got, "time"); v.Value != 0.25 || v.Unit != "s" || v.Better != workloads.LowerIsBetter || !v.Primary {
			t.Errorf("%s: %+v", kind, v)
		}
		if user, elapsed := named(t, got, "user"), named(t, got, "elapsed"); user.Value <= 0 || elapsed.Value < user.Value-0.05 { // the shell knows ticks
			t.Errorf("%s: user %v, elapsed %v", kind, user.Value, elapsed.Value)
		}
		if v := named(t, got, "switches"); (v.Missing != "") != (kind == "shell") {
			t.Errorf("%s: %+v", kind, v)
		}
		if b, err := os.ReadFile(filepath.Join(env.Dir, "stderr")); err != nil || string(b) != "good $HOME 'day'\n" {
			t.Errorf("%s: stderr %q, %v", kind, b, err)
		}
		one := map[string]string{"m": "rusage:user"}
		for want, w := range map[string]*workloads.Exec{
			"status 3; its last words: \"broken\"": {Script: "echo broken >&2; exit 3", Sources: one},
			"signal 9":                             {Script: "kill -9 $$", Sources: one},
			"/no/such/program":                     {Command: []string{"/no/such/program"}, Sources: one},
		} {
			_, err := once(t, env, w)
			failedWith(t, err, want)
		}
	}
	env := both(t, "go")
	env.Deadline = time.Second
	_, err := once(t, env, &workloads.Exec{Script: "sleep 60", Sources: map[string]string{"m": "rusage:user"}})
	failedWith(t, err, "deadline")
}
