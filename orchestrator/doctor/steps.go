package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// Deadlines of the steps that need none of their own.
const (
	consoleWait  = 10 * time.Second // for a word to come round over the console
	transferWait = 2 * time.Minute
	transferSize = 1 << 20
)

func (r *rehearsal) programs(context.Context) (string, error) {
	var have []string
	for _, d := range []any{r.t.Boot, r.t.Power, r.t.Console} {
		p, ok := d.(targets.Runner)
		if !ok {
			continue
		}
		for _, name := range p.Programs(r.t) {
			path, err := exec.LookPath(name)
			if err != nil {
				return "", err
			}
			if !slices.Contains(have, path) {
				have = append(have, path)
			}
		}
	}
	if len(have) == 0 {
		return "its drivers start none", nil
	}
	return strings.Join(have, ", "), nil
}

// reach logs in. A virtual target is started; one that is off is switched on.
func (r *rehearsal) reach(ctx context.Context) (string, error) {
	if r.local() {
		if r.o.Known == nil {
			r.down = "a virtual target runs only with a kernel: name one with --kernel, or set known_good"
			return "", errors.New(r.down)
		}
		if _, err := r.start(ctx, r.o.Known); err != nil {
			r.down = "it did not start"
			return "", err
		}
	}
	begin := time.Now()
	err := r.dial(ctx)
	if err != nil && r.t.Power != nil && !r.local() {
		r.note("no answer (%v): switching it on", err)
		if e := r.switchOn(ctx); e != nil {
			err = fmt.Errorf("%w; and switching it on did not help: %w", err, e)
		} else {
			err = nil
		}
	}
	if err != nil {
		r.down = "the target was not reached"
		return "", err
	}
	login := "login " + round(time.Since(begin)).String()
	if r.local() {
		login = "started"
	}
	begin = time.Now()
	id, err := targets.ReadBootID(ctx, r.t.Held)
	if err != nil {
		r.down = "commands on the target fail"
		return "", err
	}
	r.known = id
	return fmt.Sprintf("%s, a command %s", login, round(time.Since(begin))), nil
}

func (r *rehearsal) dial(ctx context.Context) error {
	if r.t.Held != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, r.t.Timeout.WithDefaults().Exec)
	defer stop()
	conn, err := r.t.Dial(ctx, r.t.SSH, targets.DialOptions{Note: r.o.Note})
	if err != nil {
		return err
	}
	r.t.Held = conn
	return nil
}

// switchOn supplies power and waits for an answer.
func (r *rehearsal) switchOn(ctx context.Context) error {
	if err := r.t.Power.Set(ctx, true); err != nil {
		return fmt.Errorf("power on: %w", err)
	}
	limit := r.t.Timeout.WithDefaults().Boot
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s of power on", limit))
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := r.dial(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last try: %w", context.Cause(ctx), err)
		}
	}
}

// console sends a word to the target's console over SSH and waits until it comes
// round: this console belongs to this target, and it is heard.
func (r *rehearsal) console(ctx context.Context) (string, error) {
	if r.t.Console == nil {
		return "", notTried("no console block: a hang and a network failure cannot be told apart")
	}
	stop, said, err := r.listen(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	word := "kernsweep-" + hex.EncodeToString(raw[:])
	begin := time.Now()
	var errs bytes.Buffer
	ctx, cancel := context.WithTimeoutCause(ctx, consoleWait, fmt.Errorf("a word written to its /dev/console did not come within %s", consoleWait))
	defer cancel()
	e, err := r.t.Held.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", `printf '\r\n%s\r\n' "$1" >/dev/console`, "sh", word}, Stderr: &errs})
	if err == nil && !e.OK() {
		err = fmt.Errorf("/dev/console cannot be written there: %s", strings.TrimSpace(errs.String()))
	}
	if err != nil {
		return "", err
	}
	if _, err := said(ctx, word); err != nil {
		return "", err
	}
	return fmt.Sprintf("a word came round in %s", round(time.Since(begin))), nil
}

// transfer sends a file, reads it back and compares.
func (r *rehearsal) transfer(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, transferWait, fmt.Errorf("1 MiB took more than %s", transferWait))
	defer stop()
	sent := make([]byte, transferSize)
	_, _ = rand.Read(sent) // never fails
	path := "/tmp/kernsweep-doctor-" + hex.EncodeToString(sent[:6])
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), consoleWait)
		defer stop()
		if _, err := r.t.Held.Run(ctx, targets.Cmd{Argv: []string{"rm", "-f", path}}); err != nil {
			r.note("%s could not be removed: %v", path, err)
		}
	}()
	begin := time.Now()
	if err := r.t.Held.Put(ctx, path, 0o600, bytes.NewReader(sent)); err != nil {
		return "", fmt.Errorf("sending 1 MiB: %w", err)
	}
	up := time.Since(begin)
	begin = time.Now()
	var got bytes.Buffer
	if err := r.t.Held.Get(ctx, path, &got); err != nil {
		return "", fmt.Errorf("reading 1 MiB back: %w", err)
	}
	down := time.Since(begin)
	if !bytes.Equal(got.Bytes(), sent) {
		return "", fmt.Errorf("what came back (%d bytes) is not what was sent", got.Len())
	}
	return fmt.Sprintf("1 MiB: there %.1f MB/s, back %.1f MB/s", rate(up), rate(down)), nil
}

func rate(d time.Duration) float64 { return transferSize / 1e6 / d.Seconds() }

// agent deploys the agent, which tests itself, and removes it.
func (r *rehearsal) agent(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, transferWait, fmt.Errorf("not deployed within %s", transferWait))
	defer stop()
	a, err := deploy.Install(ctx, r.t.Held, deploy.Options{Arch: r.t.Arch, Want: r.o.Target.Agent, Log: r.o.Log, Note: r.o.Note})
	if err != nil {
		return "", err
	}
	text := a.Kind() + " agent, its self-test passed"
	if why := a.Reason(); why != "" {
		text += " (" + why + ")"
	}
	return text, a.Remove(ctx)
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
