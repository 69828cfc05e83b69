package boot

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kernsweep/targets"
)

// envTrouble is how both kinds of fw_printenv say that what they print is not what
// is stored (U-Boot tools/env/fw_env.c, libubootenv). A write would then replace the
// environment by the tools' default.
var envTrouble = regexp.MustCompile(`(?im)^.*(?:bad crc|using default|cannot (?:read|initialize|open|parse)|failed to|no such (?:file|device)|permission denied).*$`)

// tool runs fw_printenv or fw_setenv; what it complains of comes with the output.
func (u *UBootEnv) tool(ctx context.Context, conn targets.Conn, name string, args ...string) (string, error) {
	argv := []string{name}
	if u.Config != "" {
		argv = append(argv, "-c", u.Config)
	}
	return shell(ctx, conn, `exec "$@" 2>&1`, append(argv, args...)...)
}

// read gives the whole environment.
func (u *UBootEnv) read(ctx context.Context, conn targets.Conn) (map[string]string, error) {
	said, err := u.tool(ctx, conn, "fw_printenv")
	if err != nil {
		return nil, fmt.Errorf("fw_printenv (are U-Boot's environment tools installed, and is fw_env.config right?): %w", err)
	}
	env := map[string]string{}
	var trouble string
	for line := range strings.SplitSeq(said, "\n") {
		name, value, ok := strings.Cut(line, "=")
		if ok && !strings.ContainsAny(name, " \t") {
			env[name] = strings.TrimSuffix(value, "\r")
		} else if trouble == "" {
			trouble = envTrouble.FindString(line)
		}
	}
	if trouble != "" || len(env) == 0 {
		return nil, fmt.Errorf("fw_printenv cannot read U-Boot's environment (%q): a write would put a default one over it, so nothing is written. Does fw_env.config name the right place; was saveenv ever done?",
			strings.TrimSpace(trouble))
	}
	return env, nil
}

// set writes a variable, "" deletes it.
func (u *UBootEnv) set(ctx context.Context, conn targets.Conn, name, value string) error {
	args := []string{name}
	if value != "" {
		args = append(args, value)
	}
	if said, err := u.tool(ctx, conn, "fw_setenv", args...); err != nil {
		return fmt.Errorf("fw_setenv %s: %w", name, err)
	} else if trouble := envTrouble.FindString(said); trouble != "" {
		return fmt.Errorf("fw_setenv %s: %s", name, strings.TrimSpace(trouble))
	}
	return nil
}

// bootcmdLast are the names in the order of writing: what starts the new kernel
// takes effect when everything else is there.
func bootcmdLast(vars map[string]string) []string {
	names := slices.Sorted(maps.Keys(vars))
	if i := slices.Index(names, "bootcmd"); i >= 0 {
		names = append(slices.Delete(names, i, i+1), "bootcmd")
	}
	return names
}

// restore puts back what ks_saved names, bootcmd first, and returns what it reads
// then.
func (u *UBootEnv) restore(ctx context.Context, conn targets.Conn, env map[string]string) (map[string]string, error) {
	names := strings.Fields(env[envSaved])
	slices.Reverse(names)
	for _, n := range names {
		if env[n] == env[envOld+n] {
			continue // flash wears out
		}
		if err := u.set(ctx, conn, n, env[envOld+n]); err != nil {
			return nil, err
		}
	}
	for name := range env {
		if strings.HasPrefix(name, envOld) {
			if err := u.set(ctx, conn, name, ""); err != nil {
				return nil, err
			}
		}
	}
	if err := u.set(ctx, conn, envSaved, ""); err != nil {
		return nil, err
	}
	now, err := u.read(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if now[n] != env[envOld+n] {
			return nil, fmt.Errorf("U-Boot's environment is not as it was: %s is %.200q and was %.200q", n, now[n], env[envOld+n])
		}
	}
	return now, nil
}
