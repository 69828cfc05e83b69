package workloads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/targets"
)

// kernbenchPlace is where a tree lies and is built on a target.
type kernbenchPlace struct {
	conn                     targets.Conn
	base, source, build, log string
}

// findScript prints the working directory: DIR ("" = choose), made if need be.
const findScript = `d=$1
if [ -z "$d" ]; then d=/tmp; [ -d /dev/shm ] && [ -w /dev/shm ] && d=/dev/shm; fi
d=$d/kernsweep-kernbench-$(id -u) # two users of one machine cannot share it
mkdir -p "$d/build" && echo "$d"`

// place finds or makes the directories on the target.
func (k *Kernbench) place(ctx context.Context, env *Env) (*kernbenchPlace, error) {
	p := &kernbenchPlace{conn: env.Target.Conn}
	out, err := p.output(ctx, "a directory to build in", "sh", "-c", findScript, "sh", k.Dir)
	if err != nil {
		return nil, err
	}
	p.base = strings.TrimSpace(out)
	if env.Made != nil {
		env.Made(p.base)
	}
	p.source, p.build, p.log = k.Source, p.base+"/build", p.base+"/build.log"
	if k.Archive != "" {
		p.source = p.base + "/source"
	}
	return p, nil
}

// readyScript says whether the tree was made ready in this boot: BASE KEY.
const readyScript = `[ "$(cat "$1/ready" 2>/dev/null)" = "$2 $(cat /proc/sys/kernel/random/boot_id)" ]`

// doneScript remembers it.
const doneScript = `echo "$2 $(cat /proc/sys/kernel/random/boot_id)" >"$1/ready"`

// unpackScript replaces the source by the archive's only directory, or by all
// of it when it has several entries: BASE.
const unpackScript = `cd "$1" && rm -rf source unpacked build ready && mkdir unpacked build && tar -xf tree.tar -C unpacked && rm tree.tar || exit
set -- unpacked/*
if [ $# = 1 ] && [ -d "$1" ]; then mv "$1" source; else mv unpacked source; fi`

// Prepare unpacks and configures the tree and builds it once to warm up, unless
// that was done since the target booted.
func (k *Kernbench) Prepare(ctx context.Context, env *Env) error {
	if _, err := k.jobs(env.CPUs); err != nil {
		return err
	}
	p, err := k.place(ctx, env)
	if err != nil {
		return err
	}
	if err := p.run(ctx, "make", "sh", "-c", "command -v make"); err != nil {
		return p.unless(err, "there is no make on the target")
	}
	key := strings.Join(append([]string{k.Source, k.Archive, fmt.Sprint(k.InTree)}, append(k.Config, k.Goals...)...), "|")
	key = strings.ReplaceAll(key, "\n", " ")
	if p.run(ctx, "the tree", "sh", "-c", readyScript, "sh", p.base, key) == nil {
		return nil
	}
	if err := k.unpack(ctx, p); err != nil {
		return err
	}
	if err := p.run(ctx, "the tree", "test", "-d", p.source); err != nil {
		return p.unless(err, "there is no source tree at "+p.source)
	}
	if len(k.Config) > 0 {
		argv := []string{"sh", "-c", `cd "$1" && shift && unset MAKEFLAGS MFLAGS MAKELEVEL && exec env "$@"`, "sh", p.source}
		for _, a := range append(kernbenchEnv(), k.Config...) {
			argv = append(argv, strings.ReplaceAll(a, "{build}", p.build))
		}
		if err := p.run(ctx, "configuring the tree", argv...); err != nil {
			return err
		}
	}
	warm := Kernbench{Level: levelOptimal}
	jobs, err := warm.jobs(env.CPUs)
	if err != nil {
		return err
	}
	argv := append([]string{"env"}, kernbenchEnv()...)
	argv = append(append(argv, "sh", "-c", makeScript, "sh", p.log), k.makeArgs(p, jobs)...)
	if err := p.run(ctx, "the warm-up build", append(argv, k.Goals...)...); err != nil {
		return p.explain(ctx, err)
	}
	return p.run(ctx, "the tree", "sh", "-c", doneScript, "sh", p.base, key)
}

func (k *Kernbench) unpack(ctx context.Context, p *kernbenchPlace) error {
	if k.Archive == "" {
		return nil
	}
	f, err := os.Open(k.Archive)
	if err != nil {
		return &UnavailableError{Reason: "the archive cannot be read: " + err.Error()}
	}
	defer f.Close()
	if err := p.conn.Put(ctx, p.base+"/tree.tar", 0o600, f); err != nil {
		return err
	}
	return p.run(ctx, "unpacking "+filepath.Base(k.Archive), "sh", "-c", unpackScript, "sh", p.base)
}

// run runs a command of a step. When it fails that is a *FailedError with its
// last words; any other error is the link's.
func (p *kernbenchPlace) run(ctx context.Context, step string, argv ...string) error {
	_, err := p.output(ctx, step, argv...)
	return err
}

func (p *kernbenchPlace) output(ctx context.Context, step string, argv ...string) (string, error) {
	var out, errs bytes.Buffer
	exit, err := p.conn.Run(ctx, targets.Cmd{Argv: argv, Stdout: &out, Stderr: &errs})
	if err != nil {
		return "", fmt.Errorf("%s: %w", step, err)
	}
	if !exit.OK() {
		return "", &FailedError{Reason: step + ": " + exit.String() + lastLines(errs.String()+out.String(), 5)}
	}
	return out.String(), nil
}

// unless makes the failure of a check a reason why the trial cannot be had.
func (p *kernbenchPlace) unless(err error, reason string) error {
	var f *FailedError
	if errors.As(err, &f) {
		return &UnavailableError{Reason: reason}
	}
	return err
}

// explain adds the end of the build's log to a failure.
func (p *kernbenchPlace) explain(ctx context.Context, err error) error {
	var f *FailedError
	if !errors.As(err, &f) {
		return err
	}
	var log bytes.Buffer
	if p.conn.Get(ctx, p.log, &log) != nil {
		return err // the first cause is worth more
	}
	return &FailedError{Reason: err.Error() + lastLines(log.String(), 10)}
}

// Names in a trial's directory.
const (
	buildLog    = "build.log"
	buildLogErr = "build.log.err"
)

// fetch brings the build's log. A log that cannot be had is noted, and does not
// change how the trial ended; what came earlier is kept then.
func (p *kernbenchPlace) fetch(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	part := filepath.Join(dir, buildLog+".part")
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	getErr := p.conn.Get(ctx, p.log, io.Writer(f))
	if err := f.Close(); err != nil {
		return err
	}
	if getErr != nil {
		err = os.WriteFile(filepath.Join(dir, buildLogErr), []byte(getErr.Error()+"\n"), 0o644)
		if _, there := os.Stat(filepath.Join(dir, buildLog)); there == nil {
			return errors.Join(err, os.Remove(part))
		}
	}
	return errors.Join(err, os.Rename(part, filepath.Join(dir, buildLog)))
}

// lastLines is the end of a text as it follows a sentence.
func lastLines(text string, n int) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ":\n" + strings.Join(lines[max(0, len(lines)-n):], "\n")
}
