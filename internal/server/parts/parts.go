// Package parts lists the parts of a server beside the core, and turns its configuration into their settings.
//
// It stands above the settings (config) and below the phases of the start (server). Of is the list. Its functions only
// make values: nothing starts before the server calls the functions of a part.
package parts

import (
	"os"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/bootstrap"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/claim"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/escalation"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/marks"
	"github.com/bowsprit/bowsprit/internal/feature/certificates/csrmetrics"
	"github.com/bowsprit/bowsprit/internal/feature/certificates/signers"
	"github.com/bowsprit/bowsprit/internal/feature/certificates/signing"
	"github.com/bowsprit/bowsprit/internal/feature/componentstatus"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/accounts"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/bootstraptoken"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/clusterroles"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/podgc"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/policystatus"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/protection"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/systemclass"
	"github.com/bowsprit/bowsprit/internal/feature/definitions"
	"github.com/bowsprit/bowsprit/internal/feature/fairness"
	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/feature/plugins"
	"github.com/bowsprit/bowsprit/internal/feature/quota"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/candidates"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/peer"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/storageversion"
	"github.com/bowsprit/bowsprit/internal/feature/review"
	"github.com/bowsprit/bowsprit/internal/feature/review/openid"
	"github.com/bowsprit/bowsprit/internal/feature/review/trust"
	"github.com/bowsprit/bowsprit/internal/feature/services"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/feature/subresource"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/reach"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/workload/apps"
	"github.com/bowsprit/bowsprit/internal/workload/autoscale"
	"github.com/bowsprit/bowsprit/internal/workload/batch"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/disruption"
	"github.com/bowsprit/bowsprit/internal/workload/endpoints"
	"github.com/bowsprit/bowsprit/internal/workload/localpod"
	"github.com/bowsprit/bowsprit/internal/workload/node"
	"github.com/bowsprit/bowsprit/internal/workload/play"
	"github.com/bowsprit/bowsprit/internal/workload/pod"
	"github.com/bowsprit/bowsprit/internal/workload/podlog"
	"github.com/bowsprit/bowsprit/internal/workload/podport"
	"github.com/bowsprit/bowsprit/internal/workload/scheduler"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
	"github.com/bowsprit/bowsprit/internal/workload/usage"
	"github.com/bowsprit/bowsprit/internal/workload/volume"
)

// Of returns the parts of a server besides the core, in the order of their start. Within one position of the
// admission chain that is also the order of plugins. This is the only list: add a part with a line here.
//
// Tests call it for the names of plugins and controllers, so it must only make values. hostname is a name for this
// machine; "" means its own.
func Of(c *config.Config, hostname string) []part.Part {
	if Behind(c) != nil {
		return extensionParts(c)
	}
	simulated, local := &simulatedPods{&podlog.Logs{}, podport.New(config.LocalPorts(&c.Workloads))}, localpod.New()
	connector := withPods(kubelets(c), c, simulated, local)
	servers := peers(c, hostname)
	join := func(own string) string { return reach.JoinURL(c, own) }
	all := []part.Part{
		servers.Lease(), // before StorageVersions; only the lease is written earlier
		storageversion.Part(slices.Contains(openGates(c), storageversion.Gate), servers.Name),
		builtinKinds(c),
		plugins.Part(pluginSettings(c)),
		embeddedPlugins(c.Admission.Plugins),
		admissionPolicies(c),
		admissionWebhooks(c),
		policystatus.Part(),
		quota.Part(),
		definitions.Part(definitionSettings(&c.Definitions)),
		aggregation.Part(aggregationSettings(c)),
		review.Part(c.ServiceAccounts.MaxTokenExpiration,
			config.Emulated(&c.Emulation).Has(serviceaccount.WebhookTokens, c.API.Features)),
		trust.Part(frontProxies(&c.Authentication.RequestHeader)),
		escalation.Part(),
		marks.Part(),
		bootstrap.Part(openGates(c)),
		clusterroles.Part(),
		accounts.Part(),
		systemclass.Part(),
		address.Part(config.ServiceRanges(&c.Services), config.NodePorts(&c.Services)),
		services.Part(services.Settings{
			Ranges: config.ServiceRanges(&c.Services), Keep: config.KeepsServiceRange(&c.Services),
			Advertised: servers.Advertised,
		}),
		protection.Part(openGates(c)),
		podgc.Part(),
		componentstatus.Part(),
		subresource.Part(),
		kubelet.Part(connector),
		csrmetrics.Part(),
		signers.Part(),
		signing.Part(signing.Settings{
			Authorities: authorities(&c.Controllers.Signing), Duration: c.Controllers.Signing.Duration,
			PodCertificates: slices.Contains(openGates(c), signing.PodCertificates),
			TrustBundles:    slices.Contains(openGates(c), signing.TrustBundles),
		}),
		bootstraptoken.Part(bootstraptoken.Settings{Publish: c.Authentication.BootstrapTokens, URL: join}),
		serverMetrics(c),
		statusPages(c.Flags, version.Emulated(config.Emulated(&c.Emulation))),
		profiles(&c.Observability),
		snapshots(),
		openid.Part(c.ServiceAccounts.JWKSURI, join),
	}
	all = append(all, optional(c)...)
	return slices.Concat(all, workloads(c, simulated, local, servers), peer.Parts(servers), extensions(c))
}

// optional returns the parts of features that the configuration switches on.
func optional(c *config.Config) (all []part.Part) {
	if *c.Authorization.ClaimStatusAuthorization {
		all = append(all, claim.Part())
	}
	if c.API.CoordinatedLeaderElection {
		all = append(all, candidates.Part(electionTimes(&c.Coordination)))
	}
	if *c.Limits.PriorityAndFairness {
		all = append(all, fairness.Part())
	}
	return all
}

// simulatedPods answers for the pods on simulated nodes.
type simulatedPods struct {
	*podlog.Logs
	*podport.Ports
}

var _ kubelet.Simulation = (*simulatedPods)(nil)

// withPods returns the settings with the pods that have no kubelet.
func withPods(
	s kubelet.Settings, c *config.Config, simulated *simulatedPods, local *localpod.Pods,
) kubelet.Settings {
	if c.Workloads.Simulation != nil {
		s.Simulation = simulated
	}
	if c.Workloads.AllowLocalPods {
		s.Local = local
	}
	return s
}

// workloads returns the parts that provide pods without nodes.
func workloads(
	c *config.Config, simulated *simulatedPods, local *localpod.Pods, servers peer.Settings,
) (all []part.Part) {
	shared := &cluster.Shared{}
	if c.Workloads.Simulation != nil {
		all = simulation(c, simulated, shared)
	}
	if c.Workloads.AllowLocalPods {
		all = append(all, localPods(c, local, servers, shared)...)
	}
	return all
}

// simulation returns the parts that simulate workloads.
func simulation(all *config.Config, pods *simulatedPods, shared *cluster.Shared) []part.Part {
	c := all.Workloads.Simulation
	list, _ := stage.Read(strings.Join(c.Stages, string(os.PathListSeparator))) // Validate has returned the error
	stages := play.New(list)
	nodes := node.Settings{
		Nodes: *c.Nodes, Zones: c.Zones, Name: c.Name, CPU: c.CPU, Memory: c.Memory, Pods: *c.Pods,
	}
	return []part.Part{play.Part(stages, shared), node.Part(nodes, stages), scheduler.Part(shared), usage.Part(),
		pod.Part(shared, stages, scheduler.Refusal), podlog.Part(pods.Logs), podport.Part(pods.Ports),
		apps.Part(shared, openGates(all)), batch.Part(shared), endpoints.Part(shared), disruption.Part(shared),
		autoscale.Part(shared, openGates(all)), volume.Part(shared)}
}

// localPods returns the parts that let users' programs be pods: with the controllers of endpoints, which a simulation
// has anyway.
func localPods(c *config.Config, pods *localpod.Pods, servers peer.Settings, shared *cluster.Shared) []part.Part {
	lease := identity.OfHost()
	if servers.Hostname != "" {
		lease = identity.Name(servers.Hostname)
	}
	all := []part.Part{localpod.Part(pods, lease)}
	if c.Workloads.Simulation == nil {
		all = append(all, endpoints.Part(shared))
	}
	return all
}

// builtinKinds brings the kinds of Kubernetes.
func builtinKinds(c *config.Config) part.Part {
	return part.Part{Name: "built-in kinds",
		Resources: func(h *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			resources = append(resources, kinds.Resources()...)
			kinds.KeepEvents(resources, max(c.Limits.EventTTL, 0))
			if c.API.CoordinatedLeaderElection {
				kinds.CoordinateLeases(resources)
			}
			emulate := config.Emulated(&c.Emulation)
			// Validate has returned the error.
			absent, _ := kinds.RuntimeConfig(c.API.RuntimeConfig).Apply(resources, emulate, openGates(c)...)
			if len(absent) > 0 {
				h.Log.Warn("--runtime-config enables versions that do not exist here", "versions", absent)
			}
			emulate.DropDisabled(resources, c.API.Features)
			if alpha := emulate.Alpha(resources); len(alpha) > 0 {
				h.Log.Warn("alpha versions are served beside an emulated release, which Kubernetes does not support",
					"release", emulate.Version.String(), "versions", alpha)
			}
			return resources
		}}
}
