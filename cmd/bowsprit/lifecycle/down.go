package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// DownCommand returns "bowsprit down".
func DownCommand() *cobra.Command {
	var remove, all bool
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Stop a named server; --delete removes its data, too",
		Long: `Stop a server that "bowsprit up" has started. NAME may be missing if there is only one. Its data, its settings and its
context stay, and "bowsprit up NAME" starts it again. With --delete, or if the server is ephemeral, they are removed. The
data of the instance "default" belongs to "bowsprit serve" as well and always stays; "bowsprit uninstall" lists it.

A server that does not stop within 30 seconds is killed.`,
		Example: `  bowsprit down dev
  bowsprit down dev --delete
  bowsprit down --all`,
		Args: arguments.AtMostOne("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := toStop(args, all)
			if err != nil {
				return err
			}
			var failures []error
			for _, i := range list {
				failures = append(failures, down(cmd.Context(), cmd.OutOrStdout(), i.Name, remove))
			}
			return errors.Join(failures...)
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "remove the data, the settings and the context")
	cmd.Flags().BoolVar(&all, "all", false, "stop all instances")
	return cmd
}

// toStop returns the instances that a command line names.
func toStop(args []string, all bool) ([]*instance.Instance, error) {
	if all && len(args) > 0 {
		return nil, exit.Usage(errors.New("--all and a name exclude each other: give one of them"))
	}
	if all {
		return instance.List()
	}
	i, err := chosen(args)
	return []*instance.Instance{i}, err
}

// chosen returns the instance that the arguments name. Without a name it is the single one, or the single running one.
func chosen(args []string) (*instance.Instance, error) {
	if len(args) == 0 {
		return only()
	}
	return existing(args[0])
}

// only returns the single instance, or the single running one.
func only() (*instance.Instance, error) {
	all, err := instance.List()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there is no instance: \"bowsprit up\" starts one")
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if running := instance.Running(all); len(running) == 1 {
		return running[0], nil
	}
	return nil, fmt.Errorf("there are several instances: name one of %s", connect.Instances())
}

// existing returns the instance with a name.
func existing(name string) (*instance.Instance, error) {
	i, err := instance.Open(name)
	if err != nil {
		return nil, err
	}
	if !i.Exists() {
		return nil, fmt.Errorf("there is no instance %s; there are %s", name, connect.Instances())
	}
	return i, nil
}

func down(ctx context.Context, out io.Writer, name string, remove bool) error {
	i, err := instance.Open(name)
	if err != nil {
		return err
	}
	release, err := i.Reserve()
	if err != nil {
		return err
	}
	defer release()
	if i, err = existing(name); err != nil { // another command may have removed it meanwhile
		return err
	}
	ran := i.Locked()
	if err := errors.Join(removeUnit(ctx, i), stop(ctx, i)); err != nil {
		return err
	}
	if !remove && !i.Ephemeral {
		state := "was stopped already"
		if ran {
			state = "is stopped"
		}
		_, err := fmt.Fprintf(out, "The instance %s %s. Its data is in %s; \"bowsprit up %[1]s\" starts it again.\n", name,
			state, i.DataDir)
		return err
	}
	if err := removeContext(i); err != nil {
		return err
	}
	kept := ""
	if !i.OwnData() {
		kept = fmt.Sprintf(" Its data stays in %s, where \"bowsprit serve\" uses it.", i.DataDir)
	}
	if err := i.Remove(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The instance %s is removed.%s\n", name, kept)
	return err
}
