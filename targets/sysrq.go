package targets

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Waits of a restart by the magic SysRq key.
const (
	sysrqAnswer = 3 * time.Second  // for the kernel's word after a key
	sysrqReset  = 15 * time.Second // for a sign that the machine starts anew
	sysrqTime   = time.Minute      // for all of it
	echoTime    = 2 * time.Second  // for the echo of what was typed
	echoTries   = 3
)

// shellRestart is typed at a root shell. /proc/sysrq-trigger takes every key,
// whatever kernel.sysrq allows on the console.
const shellRestart = "for k in s u b; do echo $k >/proc/sysrq-trigger; sleep 1; done"

// restartBySysRq restarts a machine whose kernel still listens on its console:
// by the magic SysRq key after a serial break, else by a shell that is open
// there. Nothing is typed where a boot loader may listen.
func (t *Target) restartBySysRq(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, sysrqTime, fmt.Errorf("not done within %s", sysrqTime))
	defer stop()
	h, err := t.listen(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	quiet, err := h.quiet(ctx)
	if err != nil {
		return err
	}
	if why := h.atLoader(); why != "" {
		return fmt.Errorf("a boot loader has the console (%s), so nothing is typed there", why)
	}
	err = h.breakKeys(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := h.atLoader(); why != "" || !quiet {
		return err // what talks on may be anything
	}
	if e := h.byShell(ctx); e != nil {
		return joined([]error{err, e})
	}
	return nil
}

// breakKeys sends break and s, u, b: sync, remount read-only, reset. Each is
// answered on the console (kernel Documentation/admin-guide/sysrq.rst).
func (h *hearing) breakKeys(ctx context.Context) error {
	b, ok := h.w.rwc.(Breaker)
	if !ok {
		return errors.New("this console cannot send a break")
	}
	answered := false
	for range 2 { // a break may be lost
		said, err := h.key(ctx, b, 's', sysrqWord, sysrqAnswer)
		if err != nil {
			return err
		}
		if answered = said != ""; answered {
			break
		}
	}
	if !answered {
		return fmt.Errorf("no answer within %s to a break and the SysRq key: the kernel is dead or has none (kernel.sysrq, CONFIG_MAGIC_SYSRQ_SERIAL)", sysrqAnswer)
	}
	if _, err := h.key(ctx, b, 'u', regexp.MustCompile(`Emergency Remount complete`), sysrqAnswer); err != nil {
		return err
	}
	said, err := h.key(ctx, b, 'b', sysrqWord, sysrqReset)
	switch {
	case err != nil:
		return err
	case said == "":
		return fmt.Errorf("it took the SysRq key, but did not start anew within %s", sysrqReset)
	case !restarting(said):
		return fmt.Errorf("the kernel refused the SysRq key b: %q", said)
	}
	return nil
}

// key sends one key and returns the line that answers, "" when none came.
func (h *hearing) key(ctx context.Context, b Breaker, key byte, answer *regexp.Regexp, wait time.Duration) (string, error) {
	h.forget()
	if err := b.Break(ctx); err != nil {
		return "", fmt.Errorf("no break can be sent: %w", err)
	}
	if err := h.typeSlowly(ctx, string(key)); err != nil {
		return "", err
	}
	said := ""
	_, err := h.within(ctx, wait, func(line string) bool {
		if _, msg, _ := kernelTime(line); answer.MatchString(msg) || restarting(line) {
			said = strings.ToValidUTF8(line, "?")
		}
		return said == ""
	})
	return said, err
}

// byShell restarts through a root shell at the console. A comment finds out
// whether one is there: at a boot loader's prompt it does nothing, where a bare
// Enter would repeat the last command.
func (h *hearing) byShell(ctx context.Context) error {
	h.forget()
	if err := h.typeSlowly(ctx, "#\r"); err != nil {
		return err
	}
	if err := sleep(ctx, echoTime); err != nil {
		return err
	}
	h.w.mu.Lock()
	prompt := h.w.scan.partial()
	h.w.mu.Unlock()
	if !shellReady.MatchString(prompt) || loaderPrompt.MatchString(strings.TrimLeft(prompt, " ")) {
		return errors.New("no shell is open on the console")
	}
	for range echoTries {
		h.forget()
		if err := h.typeSlowly(ctx, shellRestart); err != nil {
			return err
		}
		if h.echoed(ctx, shellRestart) {
			return h.enter(ctx)
		}
		if err := h.typeSlowly(ctx, "\x15"); err != nil { // takes the line back
			return err
		}
	}
	return errors.New("a shell is open on the console, but it does not echo what is typed")
}

// echoed waits for text in what comes back, whatever line breaks a narrow
// terminal puts in.
func (h *hearing) echoed(ctx context.Context, text string) bool {
	ctx, stop := context.WithTimeout(ctx, echoTime)
	defer stop()
	said := ""
	for {
		b, err := h.ear.Next(ctx)
		if err != nil {
			return false
		}
		said += strings.NewReplacer("\r", "", "\n", "").Replace(string(b))
		if strings.Contains(said, text) {
			return true
		}
	}
}

// enter sends the line and waits for the machine to start anew.
func (h *hearing) enter(ctx context.Context) error {
	if err := h.typeSlowly(ctx, "\r"); err != nil {
		return err
	}
	denied := ""
	found, err := h.within(ctx, sysrqReset, func(line string) bool {
		if strings.Contains(line, "ermission denied") || strings.Contains(line, "can't create") {
			denied = line
		}
		return denied == "" && !restarting(line)
	})
	switch {
	case err != nil:
		return err
	case denied != "":
		return fmt.Errorf("the shell on the console may not do it: %q", strings.ToValidUTF8(denied, "?"))
	case !found:
		return fmt.Errorf("/proc/sysrq-trigger was written from the console, but the machine did not start anew within %s", sysrqReset)
	}
	return nil
}
