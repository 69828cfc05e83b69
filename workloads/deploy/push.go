package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kernsweep/targets"
	"kernsweep/workloads/agentbin"
	"kernsweep/workloads/wire"
)

// unpack writes its standard input, gunzipped, to $1 in one step.
const unpack = `umask 077; n=$1.$$; gunzip -c >"$n" && chmod 700 "$n" && mv -f "$n" "$1" || { rm -f "$n"; exit 1; }`

// push puts the agent to file: gzipped through the exec channel when the
// machine can unpack it, which needs neither SFTP nor room for both.
func (a *Agent) push(ctx context.Context, file string, bin *agentbin.Binary, gunzip bool) error {
	a.remember(file)
	if gunzip {
		var errs strings.Builder
		exit, err := a.link().Run(ctx, targets.Cmd{Argv: []string{"/bin/sh", "-c", unpack, "sh", file},
			Stdin: bytes.NewReader(bin.GZ), Stderr: &errs})
		if err != nil {
			return fmt.Errorf("pushing the agent to %s: %w", file, err)
		}
		if exit.OK() {
			return nil
		}
		a.o.Note(fmt.Sprintf("gunzip there %s (%s); pushing the agent unpacked", exit, firstLine(errs.String())))
	}
	raw, err := bin.Raw()
	if err != nil {
		return fmt.Errorf("unpacking the agent: %w", err)
	}
	if err := a.link().Put(ctx, file, 0o700, bytes.NewReader(raw)); err != nil {
		return fmt.Errorf("pushing the agent to %s: %w", file, err)
	}
	return nil
}

// errMissing says that an agent's file was removed before it could be run.
var errMissing = errors.New("somebody else removed it")

// settle pushes an agent and tests it; once more when somebody who shares the
// machine removed the file in between.
func (a *Agent) settle(ctx context.Context, push func() error, command ...string) error {
	for try := 1; ; try++ {
		if err := push(); err != nil {
			return err
		}
		err := a.selfTest(ctx, command...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errMissing) && try < 3:
			continue
		case errors.Is(err, errMissing):
			return no("%v", err)
		}
		_ = a.Remove(ctx) // the first error is the one to tell
		return err
	}
}

// selfTest runs the agent's self-test; what it finds wrong is explained.
func (a *Agent) selfTest(ctx context.Context, command ...string) error {
	var out, errs strings.Builder
	exit, err := a.link().Run(ctx, targets.Cmd{Argv: append(command, "--self-test"), Stdout: &out, Stderr: &errs})
	if err != nil {
		return fmt.Errorf("self-test of the agent: %w", err)
	}
	if exit.OK() && strings.HasPrefix(out.String(), "ok ") {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.resumable = slices.Contains(strings.Fields(out.String()), wire.Resumable)
		return nil
	}
	// A shell that lacks its script says 2, as the agent does when it refuses.
	if exit.Code == 127 || exit.Code == 2 && !strings.Contains(errs.String(), "kernsweep-agent: ") && command[0] == "/bin/sh" {
		return fmt.Errorf("the agent's self-test %s%s: %w", exit, explain(exit, errs.String()), errMissing)
	}
	return no("the agent's self-test %s%s", exit, explain(exit, out.String()+errs.String()))
}

// explain puts the usual ways to fail in words.
func explain(exit targets.Exit, text string) string {
	words := ""
	low := strings.ToLower(text)
	switch {
	case exit.Signal == "ILL" || exit.Code == 128+4:
		words = "illegal instruction: the CPU lacks something the agent was built for (a floating-point unit, or the architecture is wrong)"
	case exit.Signal == "KILL" || exit.Code == 128+9:
		words = "killed: probably out of memory, see dmesg for an \"Out of memory\" line"
	case exit.Signal == "SEGV" || exit.Code == 128+11:
		words = "segmentation fault"
	case strings.Contains(low, "exec format error") || strings.Contains(low, `"("`) || strings.Contains(low, "unexpected ("):
		words = "built for another architecture or byte order: check arch of this target"
	case strings.Contains(low, "function not implemented") || strings.Contains(low, "enosys") || strings.Contains(low, "errno=38") || strings.Contains(low, "errno 38"):
		words = "this kernel lacks a system call that the Go runtime needs"
	case strings.Contains(low, "cannot allocate memory") || strings.Contains(low, "out of memory"):
		words = "not enough memory"
	case exit.Code == 126:
		words = "it may not be executed there"
	case exit.Code == 127:
		words = "it is not there any more, or is built for another architecture"
	}
	first := firstLine(text)
	switch {
	case words == "" && first == "":
		return ""
	case first == "":
		return " (" + words + ")"
	case words == "":
		return " (" + first + ")"
	}
	return " (" + words + "; it said: " + first + ")"
}
