package deploy

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	"kernsweep/workloads/agentbin"
)

//go:embed agent.sh
var shellAgent string

// shellCannot says why the shell agent cannot run a task, "" when it can.
func shellCannot(argv []string) string {
	if len(argv) > 0 && argv[0] != "exec" {
		return argv[0] + " needs the Go agent, and this machine runs the shell agent"
	}
	return ""
}

// ShellHash is the SHA-256 of the shell agent, hexadecimal.
func ShellHash() string {
	sum := sha256.Sum256([]byte(shellAgent))
	return hex.EncodeToString(sum[:])
}

// installShell pushes the script and tests it. It need not be executable: a
// file system mounted noexec will do.
func (a *Agent) installShell(ctx context.Context) error {
	bin, err := a.binary(ctx, "shell", func(context.Context) (*agentbin.Binary, error) { return agentbin.Pack("", []byte(shellAgent)) })
	if err != nil {
		return fmt.Errorf("shell agent: %w", err)
	}
	script, err := bin.Raw()
	if err != nil {
		return fmt.Errorf("shell agent: %w", err)
	}
	a.kind, a.hash = "shell", bin.Hash
	name := "kernsweep-agent-" + a.hash[:12]
	if a.o.Instance != "" {
		name += "-" + a.o.Instance
	}
	m, err := survey(ctx, a.link(), name)
	if err != nil {
		return err
	}
	name = m.ours(name)
	if err := a.sweep(ctx, m, name); err != nil {
		return err
	}
	size := bin.Size
	p, why := m.choose((size+1023)/1024, false)
	if why != "" {
		return no("no place even for the shell agent: %s", why)
	}
	file := p.dir + "/" + name
	there := owned(p.have, name, m.uid, size)
	err = a.settle(ctx, func() error {
		if there {
			there = false // it is pushed if the test finds otherwise
			return nil
		}
		a.remember(file)
		if err := a.link().Put(ctx, file, 0o600, bytes.NewReader(script)); err != nil {
			return fmt.Errorf("pushing the shell agent to %s: %w", file, err)
		}
		return nil
	}, "/bin/sh", file)
	if err != nil {
		return err
	}
	a.use(p, m, "/bin/sh", file)
	return nil
}
