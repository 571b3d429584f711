// Sync Gateway's rule for the database of buckets: a device adds its own chunks, in the shape of docs/format.md, and
// changes nothing. Each chunk goes into the channel of its device and into one of 16 shards, for parallel reading.
// ECMAScript 5: the gateway's interpreter knows no later one.
function sync(doc, oldDoc) {
  var KEEP_DAYS = 0; // a chunk expires so many days after it came; 0: never
  var SHARDS = 16; // sluicegate_cloud.channels has the same number
  var KEYS = {
    type: "string", format: "number", id: "string", device: "string", stream: "string", incarnation: "string",
    center: "number", first: "number", readings: "number", buckets: "number", t_first: "number", t_last: "number",
    gap: "number", codec: "string", crc32: "number", data: "string"
  };
  var WHOLE = ["format", "first", "readings", "buckets", "t_first", "t_last", "gap", "crc32"];

  function refuse(reason) { throw({forbidden: "sluicegate: " + reason}); }
  function need(true_, reason) { if (!true_) { refuse(reason); } }

  function checkKeys() {
    for (var key in doc) {
      var known = KEYS.hasOwnProperty(key) || key === "health" || key === "_id" || key === "_rev" || key === "_revisions";
      need(known, "a chunk has no key " + key);
    }
    for (var name in KEYS) { need(typeof doc[name] === KEYS[name], name + " is not a " + KEYS[name]); }
    var health = doc.health;
    need(health === undefined || (typeof health === "object" && health !== null && !(health instanceof Array)),
      "health is no object");
  }

  function checkNumbers() {
    for (var i = 0; i < WHOLE.length; i++) {
      var value = doc[WHOLE[i]];
      need(isFinite(value) && Math.floor(value) === value, WHOLE[i] + " is no whole number");
    }
    need(doc.type === "sluicegate.chunk", "type is not sluicegate.chunk");
    need((doc.format === 1 || doc.format === 2) && doc.codec === "columns-" + doc.format, "format or codec is unknown");
    need(doc.buckets >= 1 && doc.buckets <= 65536 && doc.readings >= doc.buckets, "buckets or readings is out of range");
    need(doc.first >= 0 && doc.t_first <= doc.t_last, "first, or t_first and t_last, contradict each other");
    need(doc.crc32 >= 0 && doc.crc32 < 4294967296, "crc32 is out of range");
    need(doc.data.length % 4 === 0 && /^[A-Za-z0-9+\/]+={0,2}$/.test(doc.data), "data is no base64");
  }

  function checkNames() {
    need(/^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}$/.test(doc.device), "device is no name of a device");
    need(/^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}$/.test(doc.stream), "stream is no name of a stream");
    need(/^[0-9a-f]{16}$/.test(doc.incarnation), "incarnation is not 16 hex digits");
    var parts = doc.id.split("::");
    need(doc._id === doc.id && parts.length === 4 && /^[0-9]{16,19}$/.test(parts[3]) && Number(parts[3]) === doc.first &&
      parts[0] === doc.device && parts[1] === doc.stream && parts[2] === doc.incarnation,
      "the id is not device::stream::incarnation::first");
  }

  function shardOf(id) {
    var hash = 0;
    for (var i = 0; i < id.length; i++) { hash = (hash * 31 + id.charCodeAt(i)) % 1000003; }
    var shard = hash % SHARDS;
    return "shard-" + (shard < 10 ? "0" : "") + shard;
  }

  if (doc._deleted) {
    requireAdmin();
    return;
  }
  need(!oldDoc || oldDoc._deleted, "a chunk is written once and never changed");
  checkKeys();
  checkNumbers();
  checkNames();
  requireUser(doc.device);
  channel("device-" + doc.device, shardOf(doc.id));
  // Said in any case: what a device asks for itself (_exp) has no effect then.
  expiry(KEEP_DAYS > 0 ? Math.floor(Date.now() / 1000) + KEEP_DAYS * 86400 : 0);
}
