package targets

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a machine answers on its way down, one probe after the other, and what is
// known after each: only the last one is a reboot.
func TestAnswersOnTheWayDown(t *testing.T) {
	const unknown, old, rebooted = "unknown", "old boot still answering", "rebooted"
	for n, c := range []struct {
		exit   int
		stdout string
		want   string
	}{
		{0, idOld + "\n", old},
		{255, "", unknown},
		{1, "", unknown}, // "can't fork" on its standard error
		{0, "\n", unknown},
		{0, "The system is going down for reboot NOW!\n" + idOld + "\n", old},
		{1, "", unknown}, // no such file
		{0, idNew + "\n", rebooted},
		// And others that are no identifier, whatever they hold.
		{1, idNew + "\n", unknown},
		{0, idNew + "\n" + idOld + "\n", unknown},
		{0, idNew[:35] + "\n", unknown},
		{0, idNew + "0\n", unknown},
		{0, "00000000-0000-0000-0000-000000000000\n", unknown},
		{0, strings.ToUpper(idOld) + "\r\n", old},
		{0, "cat: can't open '/proc/sys/kernel/random/boot_id'\n", unknown},
	} {
		id, err := bootIDFrom(Exit{Code: c.exit}, []byte(c.stdout))
		got := rebooted
		switch {
		case err != nil:
			got = unknown
		case id == idOld:
			got = old
		}
		if got != c.want {
			t.Errorf("probe %d: %q with exit status %d is taken for %s, not %s", n+1, c.stdout, c.exit, got, c.want)
		}
	}
	for _, e := range []Exit{{Signal: "KILL"}, {NoStatus: true}} {
		if _, err := bootIDFrom(e, []byte(idNew+"\n")); err == nil {
			t.Errorf("an answer counts though its probe %s", e)
		}
	}
}

// Five trials of a minute each: the third is void, because the machine rebooted
// in it, the next ones are trials of the boot that was verified since, and a wall
// clock that jumps back half an hour in the fifth is none of them's business.
func TestTrialsAroundAReboot(t *testing.T) {
	wall := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	probes := []struct {
		trial  int
		id     string
		uptime float64
		wall   time.Time
	}{
		{1, idOld, 100, wall}, {1, idOld, 160, wall.Add(time.Minute)},
		{2, idOld, 165, wall.Add(65 * time.Second)}, {2, idOld, 225, wall.Add(125 * time.Second)},
		{3, idOld, 230, wall.Add(130 * time.Second)}, {3, idNew, 31, wall.Add(221 * time.Second)},
		{4, idNew, 36, wall.Add(226 * time.Second)}, {4, idNew, 96, wall.Add(286 * time.Second)},
		{5, idNew, 101, wall.Add(291 * time.Second)}, {5, idNew, 161, wall.Add(-1449 * time.Second)},
	}
	m := newMachine()
	boot := BootRecord{BootID: idOld, UptimeS: 90}
	var void []int
	for _, p := range probes {
		m.set(func(m *machine) { m.id, m.recheck = p.id, fmt.Sprintf("%s\nuptime %.2f\n", p.id, p.uptime) })
		err := Recheck(t.Context(), &fakeConn{m: m, id: p.id}, boot)
		var rebooted *RebootedError
		switch {
		case errors.As(err, &rebooted):
			if rebooted.What != "boot_id" || rebooted.Was != idOld || rebooted.Is != idNew {
				t.Errorf("trial %d: %v", p.trial, err)
			}
			void = append(void, p.trial)
			boot = BootRecord{BootID: p.id, UptimeS: p.uptime} // its kernel's identity is proven anew
		case err != nil:
			t.Errorf("trial %d: %v", p.trial, err)
		}
	}
	if !slices.Equal(void, []int{3}) {
		t.Errorf("void: %v, want the third alone", void)
	}
	if strings.Contains(recheckScript, "date") {
		t.Error("the target's wall clock is asked for")
	}
}

// A jump host that fails while the target boots says nothing about the kernel,
// nor that the old system is gone.
func TestJumpHostGoneDuringABoot(t *testing.T) {
	lost := &LinkError{Phase: "connect", Hop: "gate (root@198.51.100.1:22)", Err: errors.New("jump host 1 of 1: gate: no route to it")}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "x", Dial: m.dial, Boot: started(BootTraits{Running: true}, func(Kernel) { m.set(func(m *machine) { m.dialErr = lost }) })}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		var crash *BootError
		if a.err == nil || errors.As(a.err, &crash) || !strings.Contains(a.err.Error(), "the way to it is broken") {
			t.Errorf("after %s: %v", a.took, a.err)
		}
		if slices.Contains(a.phases, PhaseDown) {
			t.Errorf("phases %v", a.phases)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		d.reboot = func() { d.machine.set(func(m *machine) { m.dialErr = lost }) }
		if err := RestartBy(t.Context(), d.target(), BySSH); err == nil || !strings.Contains(err.Error(), "whether it did is not known") {
			t.Errorf("a jump host that is gone is taken for a target that is: %v", err)
		}
	})
}

// A shutdown of a minute: the phases are told apart, and nothing counts before
// another boot_id was read and the kernel was proven.
func TestPhasesOfASlowShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "slow", Dial: m.dial, Boot: started(BootTraits{Running: true}, func(Kernel) {
			go func() {
				<-time.After(time.Minute)
				m.set(func(m *machine) { m.up = false })
				<-time.After(15 * time.Second)
				m.set(func(m *machine) { m.up, m.id = true, idNew })
			}()
		})}
		var seen []string
		begin := time.Now()
		_, rec, err := Boot(t.Context(), tg, Kernel{Name: "k", Release: "6.1.*"}, BootLog{
			Phase: func(p Phase) { seen = append(seen, fmt.Sprintf("%s %.0f", p, time.Since(begin).Seconds())) },
			Note:  func(s string) { seen = append(seen, strings.Fields(s)[0]) },
		})
		if err != nil || rec.BootID != idNew {
			t.Fatalf("%v %+v", err, rec)
		}
		if len(seen) != 5 || seen[0] != "asked 0" || seen[1] != "still" || !strings.HasPrefix(seen[2], "down 6") ||
			!strings.HasPrefix(seen[3], "reachable 7") || !strings.HasPrefix(seen[4], "verified 7") {
			t.Errorf("%q", seen)
		}
	})
}
