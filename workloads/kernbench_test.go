package workloads

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kernsweep/workloads/wire"
)

// built makes the files of a build that ended with a status.
func built(t *testing.T, end string, exit int, log string) fstest.MapFS {
	t.Helper()
	files := spooled(t, end, func(w *wire.Writer) {
		w.Write(wire.TypeTask, 1, "exec", wire.AppendTask(nil, wire.Task{Name: "exec", PID: 5, Exit: exit, StartNS: 1e9, EndNS: 51e9,
			UserUS: 80e6, SystemUS: 15e6, Voluntary: 12578, Involuntary: 5462}))
	})
	files["build.log"] = &fstest.MapFile{Data: []byte(log)}
	return files
}

func TestKernbenchParse(t *testing.T) {
	k := &Kernbench{Source: "/src"}
	p, err := k.Parse(built(t, "status=ok\n", 0, "CC a.o\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"elapsed": 50, "user": 80, "system": 15, "percent": 190, "ctx": 5462, "sleeps": 12578} {
		near(t, valueOf(t, p, name), want)
	}
	if v := valueOf(t, p, "elapsed"); !v.Primary {
		t.Error("elapsed is the primary metric")
	}

	log := strings.Repeat("CC x.o\n", 50) + "a.c:7: error: no such field\nmake: *** [a.o] Error 1\n"
	p, err = k.Parse(built(t, "status=failed\nreason=exec: exited with status 2\n", 2, log))
	var failed *FailedError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "status 2") || !strings.Contains(err.Error(), "a.c:7: error: no such field") {
		t.Errorf("%v", err)
	}
	if n := strings.Count(err.Error(), "\n"); n > 11 {
		t.Errorf("%d lines of the log", n)
	}
	if v := valueOf(t, p, "elapsed"); v.Missing == "" {
		t.Errorf("a failed build took %v", v.Value)
	}

	files := built(t, "status=ok\n", 0, "")
	delete(files, "build.log")
	files["build.log.err"] = &fstest.MapFile{Data: []byte("transfer: broken pipe\n")}
	if p, err := k.Parse(files); err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "broken pipe") {
		t.Errorf("%v %q", err, p.Notes)
	}
	if _, err := k.Parse(spooled(t, "status=ok\n", func(*wire.Writer) {})); !errors.As(err, &failed) {
		t.Errorf("no build at all: %v", err)
	}
}

func TestKernbenchDoubts(t *testing.T) {
	p, err := (&Kernbench{Source: "/s", Level: "maximal"}).Parse(spooled(t, "status=ok\n", func(w *wire.Writer) {
		putStat(w, 1, "cpu0")
		w.Write(wire.TypeMem, 1e9, "", []byte("MemTotal: 2000000 kB\n"))
		w.Write(wire.TypeTask, 1, "exec", wire.AppendTask(nil, wire.Task{Name: "exec", PID: 5, StartNS: 1, EndNS: 2e8}))
	}))
	if err != nil || len(p.Warnings) != 2 || !strings.Contains(p.Warnings[0], "50 clock ticks") || !strings.Contains(p.Warnings[1], "1953 MB") {
		t.Errorf("%v %q", err, p.Warnings)
	}
}

func TestKernbenchJobs(t *testing.T) {
	for _, c := range []struct {
		level      string
		jobs, cpus int
		want       string
	}{
		{"single", 0, 8, "-j1"}, {"half", 0, 8, "-j4"}, {"half", 0, 4, "-j2"}, {"half", 0, 3, ""}, {"half", 0, 1, ""},
		{"", 0, 4, "-j4"}, {"optimal", 0, 64, "-j64"}, {"maximal", 0, 2, "-j"}, {"optimal", 0, 0, ""}, {"", 6, 2, "-j6"},
	} {
		got, err := (&Kernbench{Level: c.level, Jobs: c.jobs}).jobs(c.cpus)
		var unavailable *UnavailableError
		if got != c.want || (c.want == "") != errors.As(err, &unavailable) {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
}

func TestKernbenchCheck(t *testing.T) {
	for _, k := range []Kernbench{{}, {Source: "/a", Archive: "/b"}, {Source: "linux"}, {Source: "/a", Level: "full"}, {Source: "/a", Jobs: -1},
		{Source: "/a", Level: "half", Jobs: 3}, {Source: "/a", Goals: []string{"-j4"}}, {Source: "/a", Dir: "tmp"}, {Source: "/a", Duration: -time.Second}} {
		if k.Check() == nil {
			t.Errorf("%+v passed", k)
		}
	}
	k := Kernbench{Archive: "linux.tar", Config: []string{"make", "O={build}", "defconfig"}, Goals: []string{"vmlinux"}}
	if err := k.Check(); err != nil || k.Estimate() != 5*time.Minute {
		t.Errorf("%v %v", err, k.Estimate())
	}
}
