package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// systemctlLimit bounds one call of systemctl, which waits for nothing but its bus.
const systemctlLimit = 20 * time.Second

// systemctl runs systemctl for the user's services.
func systemctl(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, systemctlLimit)
	defer cancel()
	call := exec.CommandContext(ctx, "systemctl", append([]string{"--user"}, args...)...)
	call.WaitDelay = time.Second // for output of another process that has inherited the pipe
	out, err := call.CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl --user %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// userSystemd reports whether this user has a systemd that runs.
func userSystemd(ctx context.Context) bool { return systemctl(ctx, "show-environment") == nil }

// lingers reports whether the user's services start at boot.
func lingers() bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join("/var/lib/systemd/linger", u.Username))
	return err == nil
}

// unitFile returns the file of a unit.
func unitFile(unit string) (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(config, "systemd", "user", unit), nil
}

// launchUnit writes, enables and starts the instance's unit.
func launchUnit(ctx context.Context, i *instance.Instance, self string) (*launched, error) {
	i.Unit = i.Context() + ".service"
	file, err := unitFile(i.Unit)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(unitText(i, self)), 0o644); err != nil {
		return nil, err
	}
	if err := errors.Join(i.Store(), systemctl(ctx, "daemon-reload"), systemctl(ctx, "enable", i.Unit),
		systemctl(ctx, "restart", "--no-block", i.Unit)); err != nil {
		_ = removeUnit(context.WithoutCancel(ctx), i) // the first error is the cause
		return nil, err
	}
	return &launched{kill: func() {
		// without a unit that failed, systemd would start it again
		_ = removeUnit(context.WithoutCancel(ctx), i)
	}}, nil
}

// unitText returns the unit of an instance. systemd restarts a server that has failed, and waits longer each time.
func unitText(i *instance.Instance, self string) string {
	var data string
	for _, name := range []string{"XDG_DATA_HOME", "BOWSPRIT_DATA_DIR"} {
		if value := os.Getenv(name); value != "" {
			data += "Environment=" + quoteUnit(name+"="+value) + "\n"
		}
	}
	return fmt.Sprintf(`# Written by "bowsprit up %[1]s"; "bowsprit down %[1]s" removes it.
[Unit]
Description=Bowsprit %[1]s

[Service]
Type=notify
ExecStart=%[2]s up %[1]s --foreground
StandardOutput=append:%[3]s
StandardError=append:%[3]s
%[4]sRestart=on-failure
RestartSec=1
RestartSteps=5
RestartMaxDelaySec=60

[Install]
WantedBy=default.target
`, i.Name, quoteUnit(self), strings.ReplaceAll(i.Log(), "%", "%%"), data)
}

// quoteUnit quotes a word of a unit file.
func quoteUnit(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word) + `"`
}

// removeUnit stops and deletes the instance's unit.
func removeUnit(ctx context.Context, i *instance.Instance) error {
	if i.Unit == "" {
		return nil
	}
	file, err := unitFile(i.Unit)
	if err != nil {
		return err
	}
	err = systemctl(ctx, "disable", "--now", "--no-block", i.Unit)
	if removed := os.Remove(file); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	i.Unit = ""
	return errors.Join(err, i.Store())
}
