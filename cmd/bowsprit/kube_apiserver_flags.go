package main

import (
	_ "embed"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// kubeFlagsTSV are the flags of kube-apiserver 1.37.2: name, type as its --help shows it, default. From the command's
// own flag set (NewAPIServerCommand in k8s.io/kubernetes/cmd/kube-apiserver/app), without --help.
//
//go:embed kube_apiserver_flags.tsv
var kubeFlagsTSV string

// kubeFlag is one line of kubeFlagsTSV.
type kubeFlag struct{ name, kind, byDefault string }

func readKubeFlags() []kubeFlag {
	var all []kubeFlag
	for line := range strings.Lines(kubeFlagsTSV) {
		column := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, kubeFlag{name: column[0], kind: column[1], byDefault: column[2]})
	}
	return all
}

// declareUnused declares a flag that has no effect. The flag's value is checked.
func (k kubeFlag) declareUnused(f *pflag.FlagSet) {
	flag := f.VarPF(&unusedValue{kind: k.kind, value: k.byDefault}, k.name, "", "accepted, without effect")
	if k.kind == "bool" {
		flag.NoOptDefVal = "true"
	}
}

// unusedValue is the value of a flag that is only checked.
type unusedValue struct{ kind, value string }

func (u *unusedValue) String() string { return u.value }
func (u *unusedValue) Type() string   { return u.kind }

// Set refuses values that kube-apiserver cannot parse, as far as the type determines them.
func (u *unusedValue) Set(value string) (err error) {
	switch u.kind {
	case "bool":
		_, err = strconv.ParseBool(value)
	case "int", "int64":
		_, err = strconv.ParseInt(value, 0, 64)
	case "uint":
		_, err = strconv.ParseUint(value, 0, 64)
	case "float32", "float64":
		_, err = strconv.ParseFloat(value, 64)
	case "duration":
		_, err = time.ParseDuration(value)
	case "ip":
		if value != "" && net.ParseIP(strings.TrimSpace(value)) == nil {
			err = fmt.Errorf("%q is not an IP address", value)
		}
	case "mapStringString":
		for pair := range strings.SplitSeq(value, ",") {
			if pair != "" && !strings.Contains(pair, "=") {
				err = fmt.Errorf("%q is not of the form key=value", pair)
			}
		}
	}
	if err == nil {
		u.value = value
	}
	return err
}

// kubeAdmissionPlugins are the plugin names of kube-apiserver 1.37.2 (AllOrderedPlugins in
// k8s.io/kubernetes/pkg/kubeapiserver/options), sorted.
var kubeAdmissionPlugins = strings.Fields(`
	AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning CertificateSubjectRestriction
	ClusterTrustBundleAttest DefaultIngressClass DefaultStorageClass DefaultTolerationSeconds DenyServiceExternalIPs
	EventRateLimit ExtendedResourceToleration ImagePolicyWebhook LimitPodHardAntiAffinityTopology LimitRanger
	MutatingAdmissionPolicy MutatingAdmissionWebhook NamespaceAutoProvision NamespaceExists NamespaceLifecycle
	NodeDeclaredFeatureValidator NodeRestriction OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize
	PodGroupProtection PodNodeSelector PodResizeValidator PodSecurity PodTolerationRestriction
	PodTopologyLabels Priority ResourceQuota RuntimeClass ServiceAccount StorageObjectInUseProtection TaintNodesByCondition
	ValidatingAdmissionPolicy ValidatingAdmissionWebhook`)

// offByDefault lists the supported plugins that kube-apiserver runs only if --enable-admission-plugins names them.
var offByDefault = []string{"NodeRestriction"}
