package store

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads/agentbin"
)

// session is a run's agents as one controller process sees them.
func session(t *testing.T, s *Store, run *results.Run, brings string) (got string, notes []string) {
	t.Helper()
	a := must(NewAgents(s, run.Dir(), func(n string) { notes = append(notes, n) }))
	asked := 0
	for range 3 {
		b, err := a.Get(t.Context(), "go/mipsle", func(context.Context) (*agentbin.Binary, error) {
			asked++
			return agentbin.Pack("mipsle", []byte(brings))
		})
		if err != nil {
			t.Fatal(err)
		}
		got = string(must(b.Raw()))
		if b.Arch != "mipsle" || b.Size != int64(len(got)) {
			t.Errorf("%+v", b)
		}
	}
	if asked > 1 {
		t.Errorf("asked %d times", asked)
	}
	return got, notes
}

func TestARunKeepsItsAgents(t *testing.T) {
	runs := t.TempDir()
	s := must(Open(runs))
	run := must(results.Create(runs, "s", results.RunMeta{Version: "1", Seed: 7}, time.Now()))
	if got, notes := session(t, s, run, "first"); got != "first" || len(notes) > 0 {
		t.Errorf("%q, %q", got, notes)
	}
	again := must(results.Open(run.Dir()))
	hash := again.Meta.Agents["go/mipsle"]
	if again.Meta.Seed != 7 || s.Verify(t.Context(), hash, "kernsweep-agent-go-mipsle") != nil {
		t.Errorf("run.json: %+v", again.Meta)
	}
	if got, notes := session(t, s, run, "tomorrow's"); got != "first" || len(notes) > 0 {
		t.Errorf("a rerun uses %q, %q", got, notes)
	}
	path := s.Path(hash, "kernsweep-agent-go-mipsle")
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, []byte("fIrst"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if got, notes := session(t, s, run, "first"); got != "first" || len(notes) != 1 || s.Verify(t.Context(), hash, "kernsweep-agent-go-mipsle") != nil {
		t.Errorf("damaged, the same at hand: %q, %q", got, notes)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	got, notes := session(t, s, run, "tomorrow's")
	if got != "tomorrow's" || len(notes) != 1 || !strings.Contains(notes[0], "is not in the store") {
		t.Errorf("gone: %q, %q", got, notes)
	}
	if d := s.AgentDifferences(t.Context(), again); len(d) != 1 || !strings.Contains(d[0], "agent go/mipsle: the one that the run used is not in the store") {
		t.Errorf("differences %q", d)
	}
}

func TestAgentsThatCannotBeHad(t *testing.T) {
	runs := t.TempDir()
	s := must(Open(runs))
	run := must(results.Create(runs, "s", results.RunMeta{}, time.Now()))
	a := must(NewAgents(s, run.Dir(), func(string) {}))
	none := errors.New("no toolchain")
	if _, err := a.Get(t.Context(), "go/arm", func(context.Context) (*agentbin.Binary, error) { return nil, none }); !errors.Is(err, none) {
		t.Errorf("%v", err)
	}
	<-a.turn // another lane builds one
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := a.Get(ctx, "go/arm", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting: %v", err)
	}
}
