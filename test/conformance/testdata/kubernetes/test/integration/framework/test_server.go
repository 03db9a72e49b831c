package framework

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path"
	"path/filepath"
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
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (kubernetes.Interface, *rest.Config,
	TearDownFunc) {
	o := options.NewServerRunOptions()
	o.Etcd.StorageConfig.Prefix = path.Join("/", uuid.New().String(), "registry")
	o.ServiceClusterIPRanges = "10.0.0.0/24"
	o.Authorization.Modes = []string{"Node", "RBAC"}
	o.ServiceAccountSigningKeyFile = writeKey(t)
	o.Authentication.APIAudiences = []string{"https://foo.bar.example.com"}
	o.Authentication.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	o.Authentication.ServiceAccounts.KeyFiles = []string{o.ServiceAccountSigningKeyFile}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(o)
	}
	flags := append(sut.GateFlags(utilfeature.DefaultMutableFeatureGate, "1.36", nil),
		"--etcd-prefix="+o.Etcd.StorageConfig.Prefix, "--service-cluster-ip-range="+o.ServiceClusterIPRanges)
	for flag, plugins := range map[string][]string{
		"--disable-admission-plugins=": o.Admission.GenericAdmission.DisablePlugins,
		"--enable-admission-plugins=":  o.Admission.GenericAdmission.EnablePlugins,
	} {
		if len(plugins) > 0 {
			flags = append(flags, flag+strings.Join(plugins, ","))
		}
	}
	if len(o.Authorization.Modes) > 0 {
		flags = append(flags, "--authorization-mode="+strings.Join(o.Authorization.Modes, ","))
	}
	if file := o.Admission.GenericAdmission.ConfigFile; file != "" {
		flags = append(flags, "--admission-control-config-file="+file)
	}
	flags = append(flags, tokenFlags(o)...)
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

// writeKey makes a key for tokens of service accounts, which tests read to sign tokens themselves.
func writeKey(t testing.TB) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "service-account.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tokenFlags says by flags what the options say about tokens of service accounts.
func tokenFlags(o *options.ServerRunOptions) []string {
	var flags []string
	if o.ServiceAccountSigningKeyFile != "" {
		flags = append(flags, "--service-account-signing-key-file="+o.ServiceAccountSigningKeyFile)
	}
	accounts := o.Authentication.ServiceAccounts
	for _, file := range accounts.KeyFiles {
		flags = append(flags, "--service-account-key-file="+file)
	}
	for _, issuer := range accounts.Issuers {
		flags = append(flags, "--service-account-issuer="+issuer)
	}
	if accounts.MaxExpiration != 0 {
		flags = append(flags, "--service-account-max-token-expiration="+accounts.MaxExpiration.String())
	}
	if len(o.Authentication.APIAudiences) > 0 {
		flags = append(flags, "--api-audiences="+strings.Join(o.Authentication.APIAudiences, ","))
	}
	return flags
}
