// Command kernsweep-agent runs on a target; see package workloads/agent.
package main

import (
	"syscall"

	"kernsweep/workloads/agent"
)

func main() { syscall.Exit(agent.Main(agent.Args())) }
