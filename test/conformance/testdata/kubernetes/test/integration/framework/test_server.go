package framework

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/google/uuid"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"conformance.local/sut"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
)

// TestServerSetup changes the options of a server. What it changes in the server's own configuration is lost here.
type TestServerSetup struct {
	ModifyServerRunOptions func(*options.ServerRunOptions)
	ModifyServerConfig     func(*controlplane.Config)
}

// TearDownFunc stops a server.
type TearDownFunc func()

// StartTestServer starts the server of $SUT_CMD, with what of the options can be said by flags.
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (kubernetes.Interface, *rest.Config, TearDownFunc) {
	o := options.NewServerRunOptions()
	o.Etcd.StorageConfig.Prefix = path.Join("/", uuid.New().String(), "registry")
	o.ServiceClusterIPRanges = "10.0.0.0/24"
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(o)
	}
	flags := append(sut.GateFlags(utilfeature.DefaultMutableFeatureGate, "1.36", nil),
		"--etcd-prefix="+o.Etcd.StorageConfig.Prefix, "--service-cluster-ip-range="+o.ServiceClusterIPRanges)
	for flag, plugins := range map[string][]string{
		"--disable-admission-plugins=": o.Admission.GenericAdmission.DisablePlugins, "--enable-admission-plugins=": o.Admission.GenericAdmission.EnablePlugins,
	} {
		if len(plugins) > 0 {
			flags = append(flags, flag+strings.Join(plugins, ","))
		}
	}
	s, err := sut.Start(t, sut.Options{}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client, rest.CopyConfig(s.Config), s.Stop
}
