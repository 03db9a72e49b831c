package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test's second process, with namespaces of its own, receives the directory of the packages and a working directory
// in its environment. It cannot remove the latter itself: containers have mounts there until its namespaces end.
const (
	inside     = "NODE_INSIDE"
	insideHome = "NODE_HOME"
)

// packages are the packages of a node beside the kubelet, by Debian's names; images are built from busybox.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "busybox-static"}

// machine unpacks the packages of a node into a directory and returns it. It skips the test if they are not available.
// NODE_PACKAGES names a directory to reuse or fill.
func machine(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a node needs root")
	}
	for _, tool := range []string{"unshare", "ip", "mount", "apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("a node needs %s, and apt-get and dpkg bring the rest: %v", tool, err)
		}
	}
	dir := os.Getenv("NODE_PACKAGES")
	if dir == "" {
		dir = filepath.Join(binaries, "packages") // for all tests
	}
	unpack(t, dir, "usr/bin/containerd", packages)
	return dir
}

// unpack extracts packages of the distribution into a directory, unless a file of theirs exists. It skips the test if
// they are not available.
func unpack(t *testing.T, dir, file string, packages []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file))); err == nil {
		return
	}
	debs := t.TempDir()
	fetch := exec.CommandContext(t.Context(), "apt-get", append([]string{"download"}, packages...)...)
	fetch.Dir = debs
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("the distribution's packages cannot be had: %v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if out, err := exec.CommandContext(t.Context(), "dpkg", "-x", file, dir).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", file, err, out)
		}
	}
}

// onMachine returns the folder of a node's packages, in a second process with its own process, mount and network
// namespaces. In the first process it runs the test in that second process, and returns "". When the second process
// ends, the kernel ends its processes and unmounts its mounts. If the machine does not support namespaces, the test is
// skipped. prepare builds programs beforehand, because the namespaces have no network.
func onMachine(t *testing.T, prepare ...func(t *testing.T)) string {
	t.Helper()
	if root := os.Getenv(inside); root != "" {
		return root
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	probe := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("this machine gives no namespaces: %v: %s", err, out)
	}
	timeout := "25m"
	if os.Getenv(conformance) != "" {
		timeout = "0"
	}
	root := machine(t)
	for _, f := range prepare {
		f(t)
	}
	// The shell is the init process of the namespace: it reaps orphaned processes.
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", "sh", "-c", `"$@"; exit $?`, "sh", self, "-test.v", "-test.timeout="+timeout,
		"-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	group, before := makeGroup(t), containerGroups(t)
	cmd.Env = append(os.Environ(), inside+"="+root, insideHome+"="+t.TempDir(), insideGroup+"="+group,
		"NODE_BINARIES="+binaries)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	removeNew(t, before)
	if group != "" {
		removeGroup(t, group)
	}
	switch {
	case err != nil:
		t.Error(err)
	case bytes.Contains(out, []byte("\n--- SKIP: ")):
		t.Skip("it was skipped there")
	}
	return ""
}

// sandbox prepares the namespaces: writable copies of fixed folders, and the node's address.
func sandbox(t *testing.T) {
	t.Helper()
	shell(t, "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward; mkdir -p /var/lib /var/log /run")
	for _, dir := range []string{"/var/lib", "/var/log", "/run", "/opt"} {
		shell(t, "mount -t tmpfs tmpfs "+dir)
	}
	addAddress(t, nodeAddress)
}

// addAddress adds an address to this machine.
func addAddress(t *testing.T, address string) {
	t.Helper()
	shell(t, "ip address add "+address+"/32 dev lo")
}

// shell runs a line that prepares the namespaces.
func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// ownFolder gives the namespaces a writable copy of a folder of this machine.
func ownFolder(t *testing.T, name string) {
	t.Helper()
	shell(t, fmt.Sprintf("cp -a %[1]s %[2]s%[1]s && mount --bind %[2]s%[1]s %[1]s", name, os.Getenv(insideHome)))
}
