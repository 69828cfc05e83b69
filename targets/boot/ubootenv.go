package boot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
)

// UBootEnv starts a kernel once through U-Boot's environment, which it changes over
// SSH by fw_setenv, for machines without a console. What dies is followed by the
// machine's own kernel, for U-Boot counts its starts: with bootcount over bootlimit
// it runs altbootcmd (U-Boot doc/api/bootcount.rst). A good boot puts the
// environment back as it was.
type UBootEnv struct {
	Netload
	Set     map[string]string `hcl:"set" doc:"variables of this start; @KERNEL@, @INITRD@, @DTB@ (paths or TFTP names), @SERVER@ and @ARGS@ are filled in"`
	Dir     string            `hcl:"dir,optional" doc:"folder on the target, readable by the loader, that the files are put into; without it and without tftp the kernel is where the target's commands find it"`
	Config  string            `hcl:"config,optional" doc:"fw_env.config on the target (default: the tools' own)"`
	Command string            `hcl:"command,optional" doc:"shell command that reboots (default: reboot, and reboot -f when that fails)"`

	notes []string // of the newest boot
}

// Variables of U-Boot's boot counter, and ours for what was there before.
const (
	envCount, envLimit, envAlt, envArmed = "bootcount", "bootlimit", "altbootcmd", "upgrade_available"
	envSaved, envOld                     = "ks_saved", "ks_old_"
)

// Check refuses what cannot work.
func (u *UBootEnv) Check() error {
	switch {
	case len(u.Set) == 0:
		return errors.New("set is empty: which variables start the kernel?")
	case u.Dir != "" && u.TFTP != "":
		return errors.New("dir and tftp exclude each other")
	case u.Dir != "" && !path.IsAbs(u.Dir):
		return fmt.Errorf("dir = %q: want an absolute path of the target", u.Dir)
	case u.TFTP == "" && (u.Listen != "" || u.Root != ""):
		return errors.New("tftp_listen and tftp_root go with tftp")
	}
	if u.TFTP != "" {
		if err := u.Netload.check(); err != nil {
			return err
		}
	}
	for name, value := range u.Set {
		switch {
		case slices.Contains([]string{envCount, envLimit, envAlt, envArmed}, name) || strings.HasPrefix(name, "ks_"):
			return fmt.Errorf("set: %s is the boot counter's business, and kernsweep's", name)
		case name == "" || strings.ContainsAny(name, "= \t\r\n"):
			return fmt.Errorf("set: %q is no name of a variable", name)
		case strings.ContainsAny(value, "\r\n") || strings.HasPrefix(value, "-"):
			return fmt.Errorf("set: the value of %s has a line's end, or begins with a minus", name)
		case strings.Contains(value, "@SERVER@") && u.TFTP == "":
			return fmt.Errorf("set: %s names @SERVER@, and tftp is not set", name)
		case u.Dir == "" && u.TFTP == "" && strings.Contains(value, "@KERNEL@"):
			return fmt.Errorf("set: %s names @KERNEL@, and neither dir nor tftp is set", name)
		}
	}
	return nil
}

// Traits of the method.
func (u *UBootEnv) Traits() targets.BootTraits {
	args := false
	for _, v := range u.Set {
		args = args || strings.Contains(v, "@ARGS@")
	}
	return targets.BootTraits{Running: true, Returns: true, Cmdline: args, Image: u.Dir != "" || u.TFTP != ""}
}

// Notes tells what happened at the newest boot.
func (u *UBootEnv) Notes() []string { return slices.Concat(u.notes, u.Netload.Notes()) }

// Boot sets the variables, reads them back and asks for the reboot.
func (u *UBootEnv) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	u.notes = nil
	if t.Held == nil {
		return errors.New("uboot-env: no link to the running system")
	}
	env, err := u.read(ctx, t.Held)
	if err != nil {
		return err
	}
	if env[envSaved] != "" {
		u.notes = append(u.notes, "the environment was still that of a start that failed, and is put back: "+env[envSaved])
		if env, err = u.restore(ctx, t.Held, env); err != nil {
			return err
		}
	}
	if err := falls(env); err != nil {
		return err
	}
	fill, err := u.place(ctx, t, k)
	if err != nil {
		return err
	}
	next := map[string]string{envCount: "0", envLimit: "1"}
	if _, ok := env[envArmed]; ok {
		next[envArmed] = "1" // a counter in the environment counts only then
	}
	for name, value := range u.Set {
		next[name] = fill.Replace(value)
	}
	if err := u.write(ctx, t.Held, env, next); err != nil {
		return u.undo(ctx, t.Held, err)
	}
	actx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	if err := targets.AskReboot(actx, t.Held, u.Command); err != nil {
		return u.undo(ctx, t.Held, err)
	}
	return nil
}

// falls refuses an environment that has nothing to fall back to.
func falls(env map[string]string) error {
	_, counts := env[envCount]
	_, limits := env[envLimit]
	switch {
	case env[envAlt] == "":
		return errors.New("U-Boot's environment has no altbootcmd, so nothing would follow a kernel that dies: set altbootcmd to what starts the machine's own kernel")
	case !counts && !limits:
		return errors.New("U-Boot's environment shows no boot counter (neither bootcount nor bootlimit): is it built with CONFIG_BOOTCOUNT_LIMIT? Then fw_setenv bootlimit 1 once")
	}
	return nil
}

// place makes the kernel's files reachable and says what the placeholders mean.
func (u *UBootEnv) place(ctx context.Context, t *targets.Target, k targets.Kernel) (*strings.Replacer, error) {
	var at netFiles
	switch {
	case u.TFTP != "":
		names, err := u.publish(ctx, t, k)
		if err != nil {
			return nil, err
		}
		at = names
	case u.Dir != "":
		in, err := install(ctx, t.Held, u.Dir, k, true)
		if err != nil {
			return nil, err
		}
		if err := prune(ctx, t.Held, u.Dir, in); err != nil {
			return nil, err
		}
		at = netFiles(in)
	}
	return strings.NewReplacer("@KERNEL@", at.Kernel, "@INITRD@", at.Initrd, "@DTB@", at.DTB, "@SERVER@", u.TFTP, "@ARGS@", k.Args()), nil
}

// write keeps what was there, sets what is next, bootcmd last, and reads it back.
func (u *UBootEnv) write(ctx context.Context, conn targets.Conn, env, next map[string]string) error {
	names := bootcmdLast(next)
	var all [][2]string
	for _, n := range names {
		if old, ok := env[n]; ok {
			all = append(all, [2]string{envOld + n, old})
		}
	}
	all = append(all, [2]string{envSaved, strings.Join(names, " ")})
	for _, n := range names {
		all = append(all, [2]string{n, next[n]})
	}
	for _, v := range all {
		if err := u.set(ctx, conn, v[0], v[1]); err != nil {
			return err
		}
	}
	now, err := u.read(ctx, conn)
	if err != nil {
		return err
	}
	for _, v := range all {
		if now[v[0]] != v[1] {
			return fmt.Errorf("fw_setenv %s: it reads back as %.200q, not %.200q", v[0], now[v[0]], v[1])
		}
	}
	return nil
}

// undo puts the environment back after cause.
func (u *UBootEnv) undo(ctx context.Context, conn targets.Conn, cause error) error {
	ctx, stop := targets.Afterwards(ctx, time.Minute)
	defer stop()
	env, err := u.read(ctx, conn)
	if err == nil && env[envSaved] != "" {
		_, err = u.restore(ctx, conn, env)
	}
	if err != nil {
		return fmt.Errorf("%w; the environment is not put back (%s has the names): %w", cause, envSaved, err)
	}
	return cause
}

// Settle puts the environment back as it was, in the verified system.
func (u *UBootEnv) Settle(ctx context.Context, _ *targets.Target, conn targets.Conn, note func(string)) error {
	env, err := u.read(ctx, conn)
	if err != nil {
		return err
	}
	if env[envSaved] == "" {
		return nil
	}
	if env[envCount] == "0" && note != nil {
		note("bootcount is 0 after this start: something has set it back, or the loader does not count, and then a kernel that dies is started again and again")
	}
	_, err = u.restore(ctx, conn, env)
	return err
}
