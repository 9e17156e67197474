package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	groupStore  = "store"
	groupClient = "client"

	environmentPrefix = "SHEAF_"
	defaultAddress    = "127.0.0.1:8815"
)

const rootHelp = `Sheaf is an Arrow Flight server for tables whose rows are found by a sharding
key and kept in order by a sorting key.

  sheaf serve --data ./data                        # a gateway on ` + defaultAddress + `
  sheaf import trips trips.parquet --sharding-key device --sorting-key ts
  sheaf scan trips --where '["device", "=", "d7"]' # rows on the terminal
  sheaf explain trips --where '["device", "=", "d7"]' --analyze

Every flag is also an environment variable: --max-message is SHEAF_MAX_MESSAGE.
A flag on the command line wins.

Exit codes: 0 done · 1 any other error · 2 wrong usage or a refused request ·
3 no such table, snapshot or store · 4 no gateway answers · 5 damaged data · 130 interrupted`

// newRoot builds the whole command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "sheaf",
		Short:             "An Arrow Flight server for sharded, sorted tables",
		Long:              rootHelp,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: fromEnvironment,
		Args:              knownCommand,
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.AddGroup(
		&cobra.Group{ID: groupStore, Title: "Running a gateway:"},
		&cobra.Group{ID: groupClient, Title: "Talking to a gateway:"},
	)
	root.AddCommand(
		newServe(), newDoctor(),
		newImport(), newExport(), newScan(), newTables(), newExplain(),
		newVersion(),
	)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	nameVariables(root)
	return root
}

// nameVariables puts each flag's environment variable into its help text.
func nameVariables(command *cobra.Command) {
	command.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			flag.Usage += " [" + variable(flag.Name) + "]"
		}
	})
	for _, child := range command.Commands() {
		nameVariables(child)
	}
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment gives every flag that the command line does not name the
// value of its variable, if that is set.
func fromEnvironment(command *cobra.Command, _ []string) error {
	var failed error
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		value, found := os.LookupEnv(variable(flag.Name))
		if !found || flag.Changed || failed != nil || flag.Name == "help" {
			return
		}
		if err := command.Flags().Set(flag.Name, value); err != nil {
			failed = flagError(fmt.Errorf("environment variable %s: %w", variable(flag.Name), err))
		}
	})
	return failed
}

// goNames is what Go says of a number that it cannot read, before the reason.
var goNames = regexp.MustCompile(`strconv\.\w+: parsing "(?:[^"\\]|\\.)*": `)

// flagError is a wrong value of a flag, without the names of Go's functions.
func flagError(err error) error {
	return usageError{errors.New(goNames.ReplaceAllString(err.Error(), ""))}
}

// knownCommand refuses what is no subcommand of root, naming near ones.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("unknown command %q%s", args[0], hint)}
}

// noArguments is the argument check of commands that take flags only.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: %s", args[0], command.UseLine())}
	}
	return nil
}

// oneTable is the argument check of commands that take a table's name.
func oneTable(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("name one table: %s", command.UseLine())}
	}
	return nil
}
