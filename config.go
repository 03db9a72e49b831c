package bowsprit

import "github.com/bowsprit/bowsprit/internal/server/config"

// Config configures a Server. The zero value with Ephemeral or DataDir set is complete.
type Config = config.Config

// The groups of a Config, in its order.
type (
	ListenConfig         = config.Listen          // where clients reach the server
	EtcdConfig           = config.Etcd            // where objects are stored
	EncryptionConfig     = config.Encryption      // encryption of stored objects
	TLSConfig            = config.TLS             // the server's certificates
	HTTPConfig           = config.HTTP            // response headers for browsers
	AuthenticationConfig = config.Authentication  // how clients are authenticated
	AuthorizationConfig  = config.Authorization   // the permissions of users
	AuditConfig          = config.Audit           // recorded requests, and the destinations of the records
	ObservabilityConfig  = config.Observability   // metrics, profiles and traces
	LimitsConfig         = config.Limits          // timeouts, lifetimes and maximum numbers
	AggregationConfig    = config.Aggregation     // how requests reach the servers of other APIs
	EgressConfig         = config.Egress          // the proxies to other servers
	KubeletConfig        = config.Kubelet         // how the servers on nodes are reached
	ServicesConfig       = config.Services        // addresses and ports of services
	ServiceAccountConfig = config.ServiceAccounts // tokens of service accounts
	ControllersConfig    = config.Controllers     // controllers of the server
	AdmissionConfig      = config.Admission       // plugins that change and refuse writes
	APIConfig            = config.API             // built-in kinds and formats
	EmulationConfig      = config.Emulation       // the release of Kubernetes that the server behaves like
	CoordinationConfig   = config.Coordination    // leader election among several servers
	VersionsConfig       = config.Versions        // how custom objects move between versions
	DefinitionsConfig    = config.Definitions     // protection of custom objects from changes of their definition
	WorkloadsConfig      = config.Workloads       // simulation of nodes, pods and their controllers
)

// The groups within the groups of a Config.
type (
	RequestHeaderConfig = config.RequestHeader  // proxies that name users in headers
	OIDCConfig          = config.OIDC           // an issuer of tokens by OpenID Connect
	TokenWebhookConfig  = config.TokenWebhook   // a webhook that reviews tokens
	AuditLogConfig      = config.AuditLog       // the log of events
	AuditWebhookConfig  = config.AuditWebhook   // the delivery of events
	AuditBatchConfig    = config.AuditBatch     // the collection of events before delivery
	AuditTruncateConfig = config.AuditTruncate  // the size of events
	SigningConfig       = config.Signing        // authorities that sign certificate requests
	AuthorityFiles      = config.AuthorityFiles // the certificate and the key of an authority
	Simulation          = config.Simulation     // simulated nodes
)

// Code of the program that embeds the server.
type (
	Clock            = config.Clock            // the time of objects and controllers
	AdmissionPlugin  = config.AdmissionPlugin  // admits writes, like a webhook without HTTP
	AdmissionRequest = config.AdmissionRequest // a write, for an AdmissionPlugin
	Conversion       = config.Conversion       // converts custom objects between versions
	Extension        = config.Extension        // adds kinds; package extension makes it
)

// The settings of a Config for flags.
type (
	Command = config.Command // a command that starts a server
	Setting = config.Setting // a setting with its flag
	Form    = config.Form    // how the text of a flag becomes the value of a setting
)

// The commands. They share most settings, under the names that kube-apiserver gives them.
const (
	Serve         = config.Serve
	KubeAPIServer = config.KubeAPIServer
)

// The forms.
const (
	Plain    = config.Plain
	Repeated = config.Repeated
	Seconds  = config.Seconds
	Quoted   = config.Quoted
	Bounded  = config.Bounded
	Explicit = config.Explicit
	Ports    = config.Ports
)
