package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/localconn"
	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

// hostile is a task that nobody gets rid of by asking: it ignores what it can,
// and has a daemon outside its group, session and descriptors.
const hostile = `trap '' TERM HUP INT; setsid sh -c "trap '' TERM HUP; exec </dev/null >/dev/null 2>&1; (sleep 300; :) & sleep 301; :" & ` +
	`(trap '' TERM HUP; sleep 302; :) & exec </dev/null >/dev/null 2>&1; sleep 303; :`

// TestTheNextRunEndsLeftovers kills controllers in the middle of tasks that do
// not want to end, and their agents too, and starts the next run.
func TestTheNextRunEndsLeftovers(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		scene
		tasks     int
		ssh, dead bool // the agent was killed as well
		want      string
	}{
		{scene{Work: "exec", Agent: "go", Script: hostile}, 1, true, false, "ended a leftover task of an earlier run: exec -- sh -c trap"},
		{scene{Work: "exec", Agent: "shell", Script: hostile}, 1, true, false, "ended a leftover task of an earlier run: exec -- sh -c trap"},
		{scene{Work: "exec", Agent: "go", Script: hostile}, 1, false, true, "ended a leftover task of an earlier run: exec -- sh -c trap"},
		{scene{Work: "exec", Agent: "shell", Script: hostile}, 1, false, true, "ended a leftover task of an earlier run: exec -- sh -c trap"},
		{scene{Work: "latency", Agent: "go"}, 1, true, false, "ended a leftover task of an earlier run: latency "},
		{scene{Work: "crunch", Agent: "go"}, 1, false, true, "ended a leftover task of an earlier run: crunch "},
		{scene{Work: "iperf to the peer", Agent: "go"}, 2, true, false, "ended a leftover task of an earlier run: exec -- iperf "},
		{scene{Work: "stream", Agent: "go"}, 2, false, true, "ended a leftover task of an earlier run: stream "},
	} {
		t.Run(fmt.Sprint(k.Work, "/", k.Agent, "/ssh ", k.ssh, "/agent dead ", k.dead), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, k.scene)
			s.Port = targetstest.FreePort(t)
			if k.ssh {
				s.SSH = targetstest.SSHD(t).SSH
			}
			c := s.start(t)
			s.running(t, k.tasks)
			least := 1
			if k.Script == hostile {
				least = 5 // the shells and sleeps
			}
			await(t, "the processes of the task", func() bool { return len(s.marked()) >= least })
			kill9(c)
			b := s.begun()
			if k.dead {
				for _, x := range append(b["target"], b["peer"]...) {
					killAgent(t, x.File)
				}
			}
			start := time.Now()
			var notes []string
			target, peer, done, err := s.sides(t.Context(), nil, func(n string) { notes = append(notes, n) })
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			t.Logf("%v, notes %q", time.Since(start), notes)
			if len(notes) != k.tasks { // of two ends of a transfer, one may end with the other
				t.Errorf("%d notes, want %d: %q", len(notes), k.tasks, notes)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, k.want) || !strings.Contains(all, "s ago)") {
				t.Errorf("notes %q", notes)
			}
			for _, a := range []*Agent{target, peer} {
				if err := a.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
			s.clean(t)
		})
	}
}

// TestALivingKernsweepIsLeftAlone: neither on a target nor on the controller is
// anything of it touched, whoever installs an agent beside it.
func TestALivingKernsweepIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, scene{Work: "iperf to the peer", Agent: "go", Port: targetstest.FreePort(t)})
	s.start(t)
	s.running(t, 2)
	var notes []string
	target, peer, done, err := s.sides(t.Context(), nil, func(n string) { notes = append(notes, n) })
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	await(t, "the trial to end", func() bool { return len(s.begun()["over"]) > 0 })
	if over := s.begun()["over"][0].File; over != "<nil>" || len(notes) > 0 {
		t.Errorf("the other's trial ended with %s; notes %q", over, notes)
	}
	checkTrial(t, s)
	for _, a := range []*Agent{target, peer} {
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// spoolOf writes a spool as a process would that began at start.
func spoolOf(t *testing.T, path string, pid int, start string) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("pid=%d\nstart=%s\nboot_id=%sargv=exec -- true\n", pid, start, boot)
	text := wire.Magic + "begin 1000000000 " + strconv.Itoa(len(body)) + "\n" + body + "\n"
	for file, text := range map[string]string{path: text, path + ".reserve": "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// innocent is a process that must survive.
func innocent(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "310")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill9(c) })
	return c
}

// TestWhatIsNotOursIsNotKilled: numbers of processes are used again, and files
// can be named like ours.
func TestWhatIsNotOursIsNotKilled(t *testing.T) {
	t.Parallel()
	gone := owner{here(), 1 << 22, "7"}.String()
	foreign := owner{"00000000", 12, "7"}.String()
	for _, k := range []struct {
		name, file string
		write      func(t *testing.T, file string, pid int, start string)
		old        bool
		instance   string
		stays      bool
		note       string
	}{
		{"the number is another's now", "kernsweep-" + gone + "-0123456789ab.spool",
			func(t *testing.T, f string, pid int, start string) { spoolOf(t, f, pid, "1"+start) }, false, "", false, "removed the spool"},
		{"of another format", "kernsweep-" + gone + "-0123456789ab.spool",
			func(t *testing.T, f string, pid int, start string) {
				write(t, f, fmt.Sprintf("some-spool 1\nbegin 1 20\npid=%d\nstart=%s\n", pid, start))
			}, false, "", true, "is none: left as it is"},
		{"pid 1", "kernsweep-" + gone + "-0123456789ab.spool",
			func(t *testing.T, f string, _ int, _ string) { spoolOf(t, f, 1, startOf(1)) }, false, "", true, "is none"},
		{"no number", "kernsweep-" + gone + "-0123456789ab.spool",
			func(t *testing.T, f string, pid int, start string) {
				write(t, f, fmt.Sprintf("%sbegin 1 20\npid=-%d\nstart=%s\n", wire.Magic, pid, start))
			}, false, "", true, "is none"},
		{"empty", "kernsweep-" + gone + "-0123456789ab.spool",
			func(t *testing.T, f string, _ int, _ string) { write(t, f, "") }, false, "", false, "removed the spool"},
		{"another name", "kernsweep-notes.spool", spoolOf, false, "", true, ""},
		{"new, another's, on the controller", "kernsweep-0123456789ab.spool", spoolOf, false, Instance(), true, ""},
		{"new, of another machine, on the controller", "kernsweep-" + foreign + "-0123456789ab.spool", spoolOf, false, Instance(), true, ""},
		{"old and alive, on the controller", "kernsweep-0123456789ab.spool", spoolOf, true, Instance(), true, ""},
		{"old and idle, on the controller", "kernsweep-0123456789ab.spool",
			func(t *testing.T, f string, pid int, start string) { spoolOf(t, f, pid, "1"+start) }, true, Instance(), false, "removed the spool"},
		{"a living kernsweep's, on a target", "kernsweep-" + Instance() + "-0123456789ab.spool", spoolOf, false, "", true, ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			dir, c := t.TempDir(), innocent(t)
			file := filepath.Join(dir, k.file)
			k.write(t, file, c.Process.Pid, startOf(c.Process.Pid))
			if k.old {
				past := time.Now().Add(-49 * time.Hour)
				for _, f := range []string{file, file + ".reserve"} {
					if err := os.Chtimes(f, past, past); err != nil {
						t.Fatal(err)
					}
				}
			}
			var notes []string
			conn := placed{localconn.New(), dir}
			t.Cleanup(func() { conn.Close() })
			install(t, conn, Options{Want: "shell", Instance: k.instance, Note: func(n string) { notes = append(notes, n) }})
			_, err := os.Stat(file)
			if stays := err == nil; stays != k.stays {
				t.Errorf("the file: %v; notes %q", err, notes)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, k.note) || k.note == "" && len(notes) > 1 {
				t.Errorf("notes %q", notes)
			}
			if startOf(c.Process.Pid) == "0" {
				t.Error("an innocent process was killed")
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A lane that leaves while its task still runs (its link was dead when it was to
// be ended) takes the task along.
func TestRemoveEndsWhatStillRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "shell"} {
		s := newScene(t, scene{Agent: kind})
		lost := &fakeConn{cut: func(argv []string) bool { return strings.Contains(strings.Join(argv, " "), " run -keep") }}
		a := install(t, placed{lost, s.Target}, Options{Want: kind})
		file := ""
		err := a.Tracked(func(b Spooled) error { file = b.File; return nil }).Run(t.Context(),
			workloads.Task{Argv: []string{"exec", "--", "sh", "-c", hostile}, Dir: s.Dir, Deadline: time.Minute})
		if err == nil {
			t.Fatal("the link was not lost")
		}
		write(t, s.Begun, "target|"+file+"|\n")
		await(t, "the task", func() bool { return len(s.marked()) >= 5 })
		a.Through(placed{&fakeConn{}, s.Target})
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		s.clean(t)
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	gone, mine := owner{here(), 1 << 22, "7"}.String(), Instance()
	line := func(age, kind string, uid int, name string) string {
		return fmt.Sprintf("%s %srw------- 1 %d 0 77 Jan 1 00:00 /tmp/%s", age, kind, uid, name)
	}
	const id = "-0123456789ab.spool"
	for _, k := range []struct {
		line, target, controller string // how it is treated; "-": left alone, "": a file that is removed
	}{
		{line("new", "-", 5, "kernsweep-"+gone+id), "end", "end"},
		{line("new", "-", 0, "kernsweep-"+gone+id), "-", "-"}, // another user's
		{line("new", "l", 5, "kernsweep-"+gone+id), "-", "-"},
		{line("new", "-", 5, "kernsweep-"+mine+id), "-", "-"},
		{line("new", "-", 5, "kernsweep-00000000-1-2"+id), "end", "-"},
		{line("old", "-", 5, "kernsweep-00000000-1-2"+id), "end", "idle"},
		{line("new", "-", 5, "kernsweep"+id), "end", "-"},
		{line("new", "-", 5, "kernsweep"+id+".reserve"), "end", "-"},
		{line("new", "d", 5, "kernsweep-"+gone+id+".d"), "end", "end"},
		{line("new", "-", 5, "kernsweep-"+gone+"-00ffffffffff.spool"), "-", "-"},     // spared
		{line("new", "-", 5, "kernsweep-"+mine+"-00eeeeeeeeee.spool"), "end", "end"}, // of the agent before
		{line("new", "-", 5, "kernsweep-123.spool"), "-", "-"},
		{line("new", "-", 5, "kernsweep-agent-amd64-0123456789ab-5"), "-", "-"},
		{line("old", "-", 5, "kernsweep-agent-amd64-0123456789ab-5"), "", ""},
		{line("new", "-", 5, "kernsweep-agent-amd64-0123456789ab-"+gone+"-5"), "", ""},
		{line("old", "-", 5, "kernsweep-agent-0123456789ab-"+mine+"-5"), "-", "-"},
		{line("old", "-", 5, "kernsweep-agent-this-one"), "-", "-"},
	} {
		for instance, want := range map[string]string{"": k.target, mine: k.controller} {
			a := &Agent{o: Options{Instance: instance, Spare: []string{"/run/kernsweep-" + gone + "-00ffffffffff.spool"}},
				stale: []string{"/var/run/kernsweep-" + mine + "-00eeeeeeeeee.spool"}}
			m := parseMachine("uid 5\ndir yes /tmp\nleft " + k.line + "\ndir yes /var/tmp\nleft " + k.line + "\n")
			got := "-"
			switch found := a.leftovers(m, "kernsweep-agent-this-one"); {
			case len(found) == 1, len(found) == 2 && found[0].how == "":
				got = found[0].how
			case len(found) > 0:
				t.Errorf("%s: %v", k.line, found)
			}
			if got != want {
				t.Errorf("instance %q, %s: %q, want %q", instance, k.line, got, want)
			}
		}
	}
}
