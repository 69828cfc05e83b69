package boot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

// While sysupgrade works, the link is looked at this often, each time for at
// most linkTime: a system whose processes were all ended does not answer.
const (
	linkPoll = time.Second
	linkTime = 10 * time.Second
	// procd, asked by sysupgrade, may end it with an error and go on by itself.
	endGrace = 10 * time.Second
)

// start runs sysupgrade and returns nil once the link is gone. A system that is
// still there when sysupgrade has failed, or after timeouts.down, is an error
// with what sysupgrade said.
func (s *Sysupgrade) start(ctx context.Context, t *targets.Target, size int64) error {
	times := t.Timeout.WithDefaults()
	option, settings := "", "settings kept"
	if s.Keep == "nothing" {
		option, settings = "-n ", "settings not kept"
	}
	image, log, code := quoted(s.file(imageName)), quoted(s.file(logName)), quoted(s.file(codeName))
	command := fmt.Sprintf("PATH=$PATH:/sbin:/usr/sbin; rm -f %s; sysupgrade %s%s >%s 2>&1; echo $? >%s", code, option, image, log, code)
	actx, stop := context.WithTimeout(ctx, times.Exec)
	defer stop()
	if err := targets.AskReboot(actx, t.Held, command); err != nil {
		return err
	}
	begin := time.Now()
	s.notes = append(s.notes, fmt.Sprintf("sysupgrade: this boot writes flash: %s, %s, begun at %s", mib(size>>10), settings, begin.UTC().Format("15:04:05Z")))
	return s.awaitGone(ctx, t, begin, times.Down)
}

// quoted is a word for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (s *Sysupgrade) awaitGone(ctx context.Context, t *targets.Target, begin time.Time, limit time.Duration) error {
	tick := time.NewTicker(linkPoll)
	defer tick.Stop()
	var ended time.Time // when sysupgrade's failure was first seen
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		code, said, err := s.look(ctx, t.Held)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return nil // its processes are gone: it writes
		case code > 0 && ended.IsZero():
			ended = time.Now()
		case code > 0 && time.Since(ended) > endGrace:
			return fmt.Errorf("it ended with status %d and the system goes on: %s", code, said)
		case time.Since(begin) > limit:
			return fmt.Errorf("it was started and the system is still up after %s: %s", limit, said)
		}
	}
}

// look reads how far sysupgrade is: code is -1 while it runs.
func (s *Sysupgrade) look(ctx context.Context, conn targets.Conn) (code int, said string, err error) {
	ctx, stop := context.WithTimeout(ctx, linkTime)
	defer stop()
	out, err := shell(ctx, conn, `c=$(cat "$1" 2>/dev/null); echo "${c:--1}"; tail -n 8 "$2" 2>/dev/null; true`, s.file(codeName), s.file(logName))
	if err != nil {
		return -1, "", err
	}
	first, rest, _ := strings.Cut(out, "\n")
	if code, err = strconv.Atoi(strings.TrimSpace(first)); err != nil {
		code = -1 // half written
	}
	if said = oneLine(rest); said == "" {
		said = "it said nothing"
	}
	return code, said, nil
}

// cleanUp gives the memory back after a failure and returns the kernel's line
// about one that ran out, if there is one. The process that was ended then may
// be the one that served our link, so a new one is tried.
func (s *Sysupgrade) cleanUp(ctx context.Context, t *targets.Target) string {
	ctx, stop := targets.Afterwards(ctx, cleanTime)
	defer stop()
	said, err := s.tidy(ctx, t.Held)
	var link *targets.LinkError
	if errors.As(err, &link) {
		conn, err := t.Dial(ctx, t.SSH, targets.DialOptions{})
		if err != nil {
			return "" // the failure that led here is the one that matters
		}
		defer conn.Close()
		said, _ = s.tidy(ctx, conn) // as above
	}
	return said
}

func (s *Sysupgrade) tidy(ctx context.Context, conn targets.Conn) (string, error) {
	out, err := shell(ctx, conn, `rm -f "$1" "$2" "$3"
dmesg 2>/dev/null | grep -iE 'out of memory|oom-kill|oom_reaper' | tail -n 1; true`, s.file(imageName), s.file(logName), s.file(codeName))
	return strings.TrimSpace(out), err
}

// Settle waits for the first boot's overlay: until it is formatted the flash is
// busy, and the root file system is swapped when it is done.
func (s *Sysupgrade) Settle(ctx context.Context, _ *targets.Target, conn targets.Conn, note func(string)) error {
	limit := s.SettleTime
	if limit <= 0 {
		limit = formatLimit
	}
	begin := time.Now()
	st, why, err := awaitStorage(ctx, conn, "/etc", limit)
	waited := time.Since(begin).Round(time.Second)
	var link *targets.LinkError
	switch {
	case errors.As(err, &link):
		return err // Boot tries again with a new link
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("sysupgrade: timeouts.boot was over while the overlay was being made, after %s: give it more time: %w", waited, err)
	case err != nil:
		return fmt.Errorf("sysupgrade: whether the overlay is ready: %w", err)
	case st == pending:
		return fmt.Errorf("sysupgrade: the overlay is not ready after %s: %s; on the device: logread | grep -e mount_root -e jffs2", limit, why)
	case st == lost:
		note("sysupgrade: " + why)
	case waited >= formatPoll:
		note(fmt.Sprintf("sysupgrade: the overlay was ready %s after the system answered", waited))
	}
	return nil
}
