package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
)

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of testbeds.hcl, for editors and programs that make configurations",
		Long: `Print a JSON Schema (2020-12) of testbeds.hcl, made from the descriptions that the decoder uses: every block and
attribute with its type, default, choices and description. It is of the JSON shape that HCL defines for such files:
a block is an object, each of its labels a level of it. kernsweep itself reads the native syntax only.`,
		Example: "  kernsweep schema >testbeds.schema.json\n  kernsweep schema | jq '.[\"$defs\"].ssh.properties | keys'",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e := json.NewEncoder(a.out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(config.Schema())
		},
	}
}
