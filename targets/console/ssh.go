package console

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

// SSH is a command on another machine that is the console: conserver's console,
// virsh console, ipmitool sol activate, or a console server whose login is one.
// It starts the controller's own ssh, so its agent, ~/.ssh/config and
// known_hosts count.
type SSH struct {
	Host       string   `hcl:"host" doc:"name or address; may be an alias of ~/.ssh/config"`
	Port       int      `hcl:"port,optional" doc:"TCP port (default 22, or what ~/.ssh/config says)"`
	User       string   `hcl:"user,optional" doc:"login name (default: what ~/.ssh/config says, else the caller's)"`
	Key        string   `hcl:"key,optional,path" doc:"file of a private key; without it the SSH agent and ~/.ssh/config decide"`
	Via        []string `hcl:"via,optional" doc:"jump hosts in order, each [user@]host[:port]"`
	KnownHosts string   `hcl:"known_hosts,optional,path" doc:"file to check host keys against (default: ssh's own)"`
	ConfigFile string   `hcl:"config,optional" doc:"ssh_config file; \"none\" reads none"`
	Command    []string `hcl:"command,optional" doc:"program and arguments there (default: none, where logging in is enough)"`
	PTY        bool     `hcl:"pty,optional" doc:"ask for a terminal there, in raw mode: some programs refuse to work without (virsh console, ipmitool sol)"`
	Break      string   `hcl:"break,optional" doc:"what makes the program send a break, ^E for Ctrl-E: \"^Ecl0\" for conserver, \"~B\" for ipmitool"`
}

// loginTime is how long ssh is listened to before the console counts as open: a
// refused login shows within it on a network that is not slow. A later one ends
// the console with the same words.
const loginTime = 2 * time.Second

// Check refuses a block without a host.
func (c *SSH) Check() error {
	switch {
	case c.Host == "" || strings.HasPrefix(c.Host, "-"):
		return errors.New("host is empty, or looks like an option")
	case strings.HasPrefix(c.User, "-"):
		return errors.New("user looks like an option")
	case c.Port < 0 || c.Port > 65535:
		return errors.New("port: want 1 to 65535")
	}
	_, err := caret(c.Break)
	return err
}

// Programs is ssh.
func (*SSH) Programs(*targets.Target) []string { return []string{"ssh"} }

// Open logs in and starts the command.
func (c *SSH) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	return openProgram(ctx, c.argv(), c.PTY, c.Break, loginTime)
}

// argv is the ssh command line (ssh(1), ssh_config(5)): nothing is asked, no
// escape character is looked for, a dead link is found, and no shared
// connection is used, which others could close.
func (c *SSH) argv() []string {
	argv := []string{"ssh", "-e", "none", "-T"}
	if c.PTY {
		argv[3] = "-tt"
	}
	for _, o := range []string{"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10", "ServerAliveCountMax=3",
		"ControlPath=none", "ForwardX11=no", "ClearAllForwardings=yes", "LogLevel=ERROR"} {
		argv = append(argv, "-o", o)
	}
	if c.ConfigFile != "" {
		argv = append(argv, "-F", c.ConfigFile)
	}
	if c.Port > 0 {
		argv = append(argv, "-p", strconv.Itoa(c.Port))
	}
	if c.User != "" {
		argv = append(argv, "-l", c.User)
	}
	if c.Key != "" {
		argv = append(argv, "-i", c.Key, "-o", "IdentitiesOnly=yes")
	}
	if c.KnownHosts != "" {
		argv = append(argv, "-o", "UserKnownHostsFile="+strconv.Quote(c.KnownHosts), "-o", "StrictHostKeyChecking=yes")
	}
	if len(c.Via) > 0 {
		argv = append(argv, "-J", strings.Join(c.Via, ","))
	}
	argv = append(argv, "--", c.Host)
	for _, a := range c.Command { // ssh joins them by blanks for the shell there
		argv = append(argv, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return argv
}
