package cli

// Locks is the store of locks: locks of the command lock, and locks that runs of jobs with a guard
// hold besides.
type Locks struct {
	// Driver is the kind of the store. Default redis.
	Driver string `yaml:"driver" words:"redis redlock zookeeper etcd postgres"`
	// Servers are the servers of the store: URLs for redis, redlock, etcd and postgres, HOST:PORT
	// for zookeeper. Default, for redis: the server of redis.url.
	Servers []string `yaml:"servers" secret:"true"`
	// User and Password are for all of Servers: a user of Redis, etcd or PostgreSQL, or of the
	// scheme digest of ZooKeeper, whose nodes then belong to this user alone. A password in Servers
	// is then refused. Default "": user and password in Servers.
	User     string `yaml:"user"`
	Password string `yaml:"password" secret:"true"`
	// Schema of the tables, for postgres: one in which no other role may create. Default public.
	Schema string `yaml:"schema"`
	// TLS is for the connections to Servers, which begin with rediss or https; ZooKeeper and
	// PostgreSQL use TLS as soon as one of its settings is given.
	TLS TLS `yaml:"tls"`
}

// TLS names files in PEM and a name, for connections with TLS.
type TLS struct {
	// CAFile has the authorities to trust. Default "": the system's.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are the client's certificate and its key; they are read again for each
	// connection. Default "": none.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is expected in the certificate of each server. Default "": the host's name.
	ServerName string `yaml:"server_name"`
}
