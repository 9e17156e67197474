package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases (-X main.version=…).
var version = "0.1.0-dev"

func newVersion() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of what it stands on",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			about := aboutBuild()
			if asJSON {
				return json.NewEncoder(command.OutOrStdout()).Encode(about)
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "sheaf %s (%s, %s, arrow-go %s, pebble %s)\n",
				about["version"], about["revision"], about["go"], about["arrow_go"], about["pebble"])
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

func aboutBuild() map[string]string {
	about := map[string]string{
		"version": version, "revision": "unknown revision", "go": runtime.Version(),
		"arrow_go": "unknown", "pebble": "unknown",
	}
	build, found := debug.ReadBuildInfo()
	if !found {
		return about
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			about["revision"] = setting.Value
		}
	}
	for _, module := range build.Deps {
		switch module.Path {
		case "github.com/apache/arrow-go/v18":
			about["arrow_go"] = module.Version
		case "github.com/cockroachdb/pebble/v2":
			about["pebble"] = module.Version
		}
	}
	return about
}
