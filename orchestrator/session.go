package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// session is one verified boot of a lane, with its agent.
type session struct {
	*lane
	number int
	kernel string
	dir    string
	record targets.BootRecord
	agent  *deploy.Agent
	ready  map[string]error // workload.scenario -> what its preparation said
}

// start boots the planned kernel under a new number and deploys the agent. A
// *targets.BootError is about the kernel, every other error is infrastructure.
func (l *lane) start(ctx context.Context, b plan.Boot) (*session, error) {
	release, err := l.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !l.helm.started() {
		return nil, errHalted
	}
	l.boots++
	l.touched, l.at, l.stranded = true, "", false
	if !l.onlyOnce() {
		l.owed = nil // a boot resets every knob
	}
	begin := time.Now()
	dir, err := l.r.Run.NewBootDir(l.conf.Name, l.boots)
	if err != nil {
		if e := l.r.disk(err); e != nil {
			err = e
		}
		return nil, err
	}
	s := &session{lane: l, number: l.boots, kernel: b.Kernel, dir: dir, ready: map[string]error{}}
	conn, rec, err := s.bootKernel(ctx, b)
	s.record = rec
	if err != nil && ctx.Err() == nil {
		if why := l.r.outages.cause(ctx, l.conf.Name, begin); why != "" {
			err = fmt.Errorf("%s (the boot ended with: %v)", why, err)
		}
	}
	if p, ok := l.target.Power.(*Supply); ok && err != nil && ctx.Err() == nil {
		if wrong := p.notOurs(); wrong != nil { // a method that tries again may report something else
			err = fmt.Errorf("%w (the boot ended with: %v)", wrong, err)
		}
	}
	if e := l.r.disk(err); e != nil {
		err = e
	}
	err = l.acquit(ctx, b, err)
	s.judge(ctx, b, err)
	if err != nil {
		return nil, err
	}
	l.target.Held, l.at = conn, b.Kernel
	if l.machine == nil {
		l.machine = rec.Identity
	}
	l.collect(ctx, dir)
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if err := s.deploy(ctx); err != nil {
		return nil, fmt.Errorf("agent on %s (kernel %s): %w", l.conf.Name, b.Kernel, err)
	}
	return s, nil
}

func (s *session) bootKernel(ctx context.Context, b plan.Boot) (targets.Conn, targets.BootRecord, error) {
	if targets.TraitsOf(s.target.Boot).Local {
		select {
		case s.r.gate <- struct{}{}:
			defer func() { <-s.r.gate }()
		case <-ctx.Done():
			return nil, targets.BootRecord{}, context.Cause(ctx)
		}
	}
	console, err := s.openConsole(s.note(ctx))
	if err != nil {
		return nil, targets.BootRecord{}, err
	}
	k, _ := s.r.Lab.Kernel(b.Kernel).For(s.conf)
	return targets.Boot(ctx, s.target, k, targets.BootLog{
		Phase: func(p targets.Phase) {
			s.lane.record(ctx, results.Record{Kind: results.KindPhase, Phase: p, Boot: &results.Boot{Number: s.number, Kernel: b.Kernel, Block: b.Block}})
		},
		Note:    s.note(ctx),
		Console: console,
		Known:   s.lastID,
		Machine: s.machine,
		Probe:   func(ev *targets.Evidence) { s.keep(ctx, ev) },
	})
}

// judge writes the verdict on the boot to the journal and beside its evidence.
func (s *session) judge(ctx context.Context, b plan.Boot, err error) {
	j := results.Boot{Number: s.number, Kernel: b.Kernel, Block: b.Block, Outcome: results.OK, Record: s.record}
	var crash *targets.BootError
	var excused *excusedError
	switch {
	case err == nil:
	case errors.As(err, &excused):
		j.Outcome, j.Stage, j.Reason, j.LastLines = results.Lost, excused.crash.Stage, excused.crash.Err.Error(), excused.crash.LastLines
	case errors.As(err, &crash):
		j.Outcome, j.Stage, j.Reason, j.LastLines = results.BootFailed, crash.Stage, crash.Err.Error(), crash.LastLines
	case byHand(ctx) != "":
		j.Outcome, j.Reason = results.Skipped, byHand(ctx)
	case ctx.Err() != nil:
		j.Outcome, j.Reason = results.Interrupted, err.Error()
	default:
		j.Outcome, j.Reason = results.Lost, err.Error()
	}
	s.lane.record(ctx, results.Record{Kind: results.KindBoot, Outcome: j.Outcome, Reason: j.Reason, Boot: &j})
	if err := s.r.Run.WriteJSON(filepath.Join(s.dir, "boot.json"), j); err != nil {
		s.note(ctx)(err.Error())
	}
}

// keep stores what the probe saw: the kernel log beside boot.json, the rest
// below probe/.
func (s *session) keep(ctx context.Context, ev *targets.Evidence) {
	dir := filepath.Join(s.dir, "probe")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		s.note(ctx)("probe files: " + err.Error())
		return
	}
	for name, body := range ev.Files {
		path := filepath.Join(dir, strings.NewReplacer("/", "_", "\x00", "_").Replace(name))
		if name == "dmesg" {
			path = filepath.Join(s.dir, "dmesg.txt")
		}
		if err := os.WriteFile(path, body, 0o666); err != nil {
			s.note(ctx)("probe file " + name + ": " + err.Error())
		}
	}
}

// settle waits the configured time after a boot, so that start-up work is over.
func (s *session) settle(ctx context.Context) error {
	if s.conf.Settle <= 0 {
		return nil
	}
	t := time.NewTimer(s.conf.Settle)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) deploy(ctx context.Context) error {
	arch := s.conf.Arch
	if s.record.Arch != "" {
		arch = s.record.Arch
	}
	a, err := deploy.Install(ctx, s.target.Held, deploy.Options{
		Arch: arch, Want: s.conf.Agent, Release: s.record.Release, Log: s.log, Note: s.note(ctx), Redial: s.redial,
		Before: s.lane.pushed, Agents: s.r.kept.agents.Get, Spare: s.r.spare(),
	})
	if err != nil {
		return err
	}
	s.agent, s.lane.pushed = a, a
	return nil
}

// redial reaches the same boot again after a lost link.
func (s *session) redial(ctx context.Context) (targets.Conn, error) {
	conn, err := s.target.Dial(ctx, s.target.SSH, targets.DialOptions{Note: s.note(ctx)})
	if err != nil {
		return nil, err
	}
	if err := targets.Recheck(ctx, conn, s.record); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if s.target.Held != nil {
		_ = s.target.Held.Close()
	}
	s.target.Held = conn
	return conn, nil
}

func targetLock(name string) string { return "target:" + name }

// imageFiles lists the files of an image.
func imageFiles(i targets.Image) []string {
	var out []string
	for _, f := range append([]string{i.Kernel, i.DTB}, strings.Split(i.Initrd, ",")...) {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// unreadable says why a file cannot be used, "" when it can.
func unreadable(path string) string {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "no such file"
		}
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "not a regular file"
	} else if st.Size() == 0 {
		return "the file is empty"
	}
	return ""
}
