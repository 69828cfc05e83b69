package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/store"
	"kernsweep/workloads/agentbin"
)

// version is that of the release, else the commit the binary was built from, else the module's version
// with a hash of the binary itself, so that two builds never look alike.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if rev == "" {
		return info.Main.Version + " " + ownHash()
	}
	return rev + dirty
}

// ownHash is the beginning of the running binary's SHA-256.
func ownHash() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	h, err := store.Hash(context.Background(), path)
	if err != nil {
		return "unknown"
	}
	return h[:12]
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and for which CPUs agents are built in",
		Example: "  kernsweep version\n  kernsweep version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(map[string]any{"version": version(), "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH, "agents": agentbin.Embedded()})
			}
			fmt.Fprintf(a.out, "kernsweep %s (%s %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			built := strings.Join(agentbin.Embedded(), ", ")
			if built == "" {
				built = "none, they are built with the Go toolchain when needed (scripts/build embeds them)"
			}
			fmt.Fprintf(a.out, "agents built in: %s\n", built)
			return nil
		},
	}
}
