// Command kernsweep-agent runs on a target; see package workloads/agent.
package main

import (
	"os"

	"kernsweep/workloads/agent"
)

func main() { os.Exit(agent.Main(os.Args[1:])) }
