package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kernsweep/workloads/wire"
)

// realAgent builds the agent for a machine and returns its file.
func realAgent(t *testing.T, arch string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "agent-"+arch)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "kernsweep/cmd/kernsweep-agent")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "GOMIPS=softfloat", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", arch, err, out)
	}
	return bin
}

// runReal runs a task under a real agent and reads its spool.
func runReal(t *testing.T, bin string, task ...string) *wire.Spool {
	t.Helper()
	argv := append([]string{"run", "-spool", filepath.Join(t.TempDir(), "spool"), "-deadline", "2m"}, task...)
	cmd := exec.CommandContext(t.Context(), bin, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Logf("%v: %s", err, &errs)
	}
	s, err := wire.Read(&out)
	if err != nil {
		t.Fatalf("%v: %v\n%s", task, err, &errs)
	}
	return s
}

// names of the ended processes of a spool, in the order of their records.
func names(s *wire.Spool) (n []string) {
	for _, t := range s.Tasks {
		n = append(n, t.Name)
	}
	return n
}

func TestCrunch(t *testing.T) {
	bin := realAgent(t, "amd64")
	seq := runReal(t, bin, "crunch", "-work", "20", "-mode", "seq", "-size", "128")
	if seq.End["status"] != "ok" || len(seq.Tasks) != 3 {
		t.Fatalf("%v %v %s", seq.End, names(seq), seq.Stderr)
	}
	for i, want := range kernelNames() {
		if seq.Tasks[i].Name != want || seq.Tasks[i].EndNS <= seq.Tasks[i].StartNS {
			t.Errorf("task %d: %+v, want %s", i, seq.Tasks[i], want)
		}
		if i > 0 && seq.Tasks[i].StartNS < seq.Tasks[i-1].EndNS {
			t.Errorf("%s began before %s ended", want, seq.Tasks[i-1].Name)
		}
	}
	par := runReal(t, bin, "crunch", "-work", "400", "-mode", "par", "-tasks", "LTBM,LTMM", "-size", "128")
	if par.End["status"] != "ok" || len(par.Tasks) != 2 {
		t.Fatalf("%v %v", par.End, names(par))
	}
	if a, b := par.Tasks[0], par.Tasks[1]; a.EndNS < b.StartNS || b.EndNS < a.StartNS {
		t.Errorf("not in parallel: %+v %+v", a, b)
	}
	if par.Values["LTMM.checksum"]["value"] == "" || par.Values["LTMB.checksum"] != nil {
		t.Errorf("checksums %v", par.Values)
	}
}

func TestCrunchRefuses(t *testing.T) {
	bin := realAgent(t, "amd64")
	for _, args := range [][]string{
		{"-mode", "seq"}, {"-work", "0"}, {"-work", "1", "-size", "1"}, {"-work", "1", "-mode", "both"},
		{"-work", "1", "-tasks", "LTMX"}, {"-work", "1", "LTMM"}, {"-werk", "1"}, {"-work"},
	} {
		s := runReal(t, bin, append([]string{"crunch"}, args...)...)
		if s.End["status"] != "failed" || s.End["reason"] == "" {
			t.Errorf("%v: %v", args, s.End)
		}
	}
}

// The same work gives the same bits on every architecture, softfloat included.
func TestCrunchChecksumsAgree(t *testing.T) {
	child := func(emulator []string, bin, name string) string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		argv := append(emulator, bin, "child", "crunch", name, "3", "64", "3")
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.ExtraFiles = []*os.File{w}
		out, err := cmd.CombinedOutput()
		w.Close()
		if err != nil {
			t.Errorf("%v: %v %s (is qemu-user installed?)", argv, err, out)
			return ""
		}
		sum := make([]byte, 64)
		n, _ := r.Read(sum)
		return string(sum[:n])
	}
	native := realAgent(t, "amd64")
	for arch, emulator := range map[string]string{"mips": "qemu-mips", "mipsle": "qemu-mipsel"} {
		foreign := realAgent(t, arch)
		for _, name := range kernelNames() {
			a, b := child(nil, native, name), child([]string{emulator}, foreign, name)
			if a == "" || a != b {
				t.Errorf("%s: %q on amd64, %q on %s", name, a, b, arch)
			}
		}
	}
}
