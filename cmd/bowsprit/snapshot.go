package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/archive"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
)

func snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save all data to a file, or restore it",
		Long: `Save all data of a server to a file, or create the data of a new server from such a file. The file is an etcd snapshot:
etcdctl and etcdutl can read it, and this command restores their snapshots. It contains no certificates: "bowsprit backup"
saves them too.`,
	}
	cmd.AddCommand(saveCommand(), restoreCommand())
	return cmd
}

// saveFlags are the flags of "bowsprit snapshot save".
type saveFlags struct {
	dataDir, kubeconfig string
	force               bool
	form                output.Form
}

// saved is the result of "bowsprit snapshot save".
type saved struct {
	File     string `json:"file"`
	Keys     int    `json:"keys"`
	Revision int64  `json:"revision"`
	Bytes    int64  `json:"bytes"`
	// Unrestorable is the reason why this program cannot restore the file.
	Unrestorable string `json:"unrestorable,omitempty"`
}

func saveCommand() *cobra.Command {
	var from saveFlags
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save a consistent copy of all data; the server may run",
		Example: `  bowsprit snapshot save backup.db                            # of the server with the default data directory
  bowsprit snapshot save backup.db --data-dir /srv/bowsprit   # running or not
  bowsprit snapshot save backup.db --kubeconfig admin.conf    # of a server elsewhere`,
		Args: arguments.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := connect.Dir(cmd.Flags(), &from.dataDir); err != nil {
				return err
			}
			return save(cmd.Context(), cmd.OutOrStdout(), args[0], from)
		},
	}
	f := cmd.Flags()
	connect.BindDir(f, &from.dataDir)
	f.StringVar(&from.kubeconfig, "kubeconfig", "",
		"read from the server of this kubeconfig, as an administrator, instead of a data directory")
	f.BoolVar(&from.force, "force", false, "replace FILE if it exists")
	from.form.Bind(f)
	return cmd
}

func restoreCommand() *cobra.Command {
	var dataDir string
	var bump uint64
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create the data of a new server from a snapshot",
		Example: `  bowsprit snapshot restore backup.db --data-dir /srv/restored
  bowsprit serve --data-dir /srv/restored`,
		Args: arguments.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restore(cmd.OutOrStdout(), args[0], dataDir, bump)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", connect.DefaultDataDir(),
		"data directory of the server; it must hold no data yet")
	cmd.Flags().Uint64Var(&bump, "bump-revision", 1_000_000_000,
		"add this to resourceVersions, so that clients with newer ones list again; 0 keeps them")
	return cmd
}

// save takes the snapshot from the data directory, or, if a server uses the directory, from that server.
func save(ctx context.Context, out io.Writer, file string, from saveFlags) error {
	if err := archive.CheckTarget(file, from.force); err != nil {
		return fmt.Errorf("nothing was saved: %w", err)
	}
	info, err := archive.Snapshot(ctx, file, from.dataDir, from.kubeconfig, nil)
	if err != nil {
		return fmt.Errorf("nothing was saved: %w", err)
	}
	result := saved{File: file, Keys: info.Keys, Revision: info.Revision, Bytes: info.Size}
	if err := info.Format.Check(file); err != nil {
		result.Unrestorable = err.Error()
	}
	return from.form.Print(out, result, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "Saved %s: %d keys at revision %d, %d bytes, checked.\n", file, info.Keys, info.Revision,
			info.Size)
		if result.Unrestorable != "" {
			fmt.Fprintf(out, "This program cannot restore it: %s.\n", result.Unrestorable)
		}
		return err
	})
}

func restore(out io.Writer, file, dataDir string, bump uint64) error {
	if dataDir == "" {
		return errors.New(
			"nothing was restored: neither XDG_DATA_HOME nor HOME is set: name a directory with --data-dir")
	}
	info, err := backup.Restore(file, dataDir, bump)
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	fmt.Fprintf(out,
		"Restored %d keys, now at revision %d. Start the server with\n\n  bowsprit serve --data-dir=%s\n\n", info.Keys,
		info.Revision, dataDir)
	if !connect.Exists(filepath.Join(dataDir, "pki")) {
		fmt.Fprintf(out,
			"It will create its own certificates. To keep the old ones, copy the old data directory's pki to %s first.\n", filepath.Join(dataDir, "pki"))
	}
	return nil
}
