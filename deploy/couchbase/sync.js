// Sync Gateway's rule for the database of buckets: a device adds its own chunks, in the shape of format.md, and
// changes nothing. Each chunk goes into the channel of its device and into one of 16 shards, for parallel reading.
// Whatever a device may put into a document is bounded, so that every reader can read it.
// ECMAScript 5: the gateway's interpreter knows no later one.
function sync(doc, oldDoc) {
  var KEEP_DAYS = 0; // a chunk expires so many days after it came; 0: never
  var SHARDS = 16; // as sluicegate_cloud.feed.provision.SHARDS: a test holds them together; configure.sh reads it here
  var KEYS = {
    type: "string", format: "number", id: "string", device: "string", stream: "string", incarnation: "string",
    center: "number", first: "number", readings: "number", buckets: "number", t_first: "number", t_last: "number",
    gap: "number", codec: "string", crc32: "number", data: "string"
  };
  var WHOLE = ["format", "first", "readings", "buckets", "t_first", "t_last", "gap", "crc32"];
  var MOST_DATA = 8388608, MOST_WHOLE = 4611686018427387904, MOST_CENTER = Math.pow(2, 960); // format.md, "Limits"
  // Of health: so deep, so many values in all, such long texts and names, numbers of 64 bits.
  var HEALTH_DEPTH = 4, HEALTH_VALUES = 1024, HEALTH_TEXT = 1024, HEALTH_NUMBER = 9223372036854775808;

  function refuse(reason) { throw({forbidden: "sluicegate: " + reason}); }
  function need(true_, reason) { if (!true_) { refuse(reason); } }

  function checkKeys() {
    for (var key in doc) {
      var known = KEYS.hasOwnProperty(key) || key === "health" || key === "key" || key === "tags" || key === "extras" || key === "_id" || key === "_rev" ||
        key === "_revisions";
      need(known, "a chunk has no key " + key.substring(0, 64));
    }
    for (var name in KEYS) { need(typeof doc[name] === KEYS[name], name + " is not a " + KEYS[name]); }
  }

  function checkHealth() {
    var health = doc.health, left = HEALTH_VALUES;
    function checkValue(value, depth) {
      need(left-- > 0, "health has more than " + HEALTH_VALUES + " values");
      if (typeof value === "number") { need(Math.abs(value) <= HEALTH_NUMBER, "health has a number beyond 64 bits"); }
      if (typeof value === "string") {
        need(value.length <= HEALTH_TEXT, "health has a text over " + HEALTH_TEXT);
        // The gateway hands over an integer that no double holds as its digits.
        need(!/^-?[0-9]{20,}$/.test(value), "health has a number beyond 64 bits");
      }
      if (typeof value !== "object" || value === null) { return; }
      need(depth < HEALTH_DEPTH, "health is nested deeper than " + HEALTH_DEPTH);
      for (var key in value) {
        need(key.length <= HEALTH_TEXT, "health has a name over " + HEALTH_TEXT);
        checkValue(value[key], depth + 1);
      }
    }
    if (health === undefined) { return; }
    need(typeof health === "object" && health !== null && !(health instanceof Array), "health is no object");
    checkValue(health, 0);
  }

  // What is known of the stream beside its name, and what its buckets carry: few names, texts of bounded length.
  function checkTexts(name, most, longest, names, values) {
    var texts = doc[name], count = 0, length = 0;
    if (texts === undefined) { return; }
    need(typeof texts === "object" && texts !== null && !(texts instanceof Array), name + " is no object");
    for (var key in texts) {
      need(names.test(key) && typeof texts[key] === "string" && values.test(texts[key]), name + " has no such text");
      count += 1;
      length += texts[key].length;
      need(count <= most && length <= longest, name + " has more than it may");
    }
    need(count > 0, name + " is empty");
  }

  function checkNumbers() {
    for (var i = 0; i < WHOLE.length; i++) {
      var value = doc[WHOLE[i]];
      need(Math.abs(value) <= MOST_WHOLE && Math.floor(value) === value, WHOLE[i] + " is no whole number of 62 bits");
    }
    need(Math.abs(doc.center) <= MOST_CENTER, "center is out of range");
    need(doc.type === "sluicegate.chunk", "type is not sluicegate.chunk");
    checkFormat();
    need(doc.buckets >= 1 && doc.buckets <= 65536 && doc.readings >= doc.buckets, "buckets or readings is out of range");
    need(doc.first >= 0 && doc.t_first <= doc.t_last, "first, or t_first and t_last, contradict each other");
    need(doc.crc32 >= 0 && doc.crc32 < 4294967296, "crc32 is out of range");
    need(doc.data.length <= MOST_DATA, "data is over " + MOST_DATA);
    need(doc.data.length % 4 === 0 && /^[A-Za-z0-9+\/]+={0,2}$/.test(doc.data), "data is no base64");
  }

  function checkFormat() {
    var keyed = doc.key !== undefined, third = doc.codec === "columns-3";
    need(!keyed || (typeof doc.key === "string" && /^[0-9a-f]{32}$/.test(doc.key)), "key is not 32 hex digits");
    var tagged = doc.tags !== undefined, carries = doc.extras !== undefined;
    need((doc.format === 4 || doc.format === 5) === carries, "extras are of formats 4 and 5");
    if (doc.format === 4 || doc.format === 5) {
      need(third || doc.codec === "columns-1" || doc.codec === "columns-2", "format or codec is unknown");
    } else if (doc.format === 3) {
      need(third || ((keyed || tagged) && (doc.codec === "columns-1" || doc.codec === "columns-2")), "format or codec is unknown");
    } else {
      need((doc.format === 1 || doc.format === 2) && doc.codec === "columns-" + doc.format, "format or codec is unknown");
      need(!keyed && !tagged, "a chunk of format " + doc.format + " has no key and no tags");
    }
  }

  function checkNames() {
    need(/^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}$/.test(doc.device), "device is no name of a device");
    // A stream of a whole plant has its key behind its name.
    need(/^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}(\/[^\x00-\x1f\x7f-\x9f]{1,64})?$/.test(doc.stream),
      "stream is no name of a stream");
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
  checkHealth();
  checkTexts("tags", 32, 8192, /^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}$/, /^[^\x00-\x1f\x7f-\x9f]{0,256}$/);
  checkTexts("extras", 16, MOST_DATA, /^[\x20-\x7e]{1,64}$/, /^[A-Za-z0-9+\/]*={0,2}$/);
  requireUser(doc.device);
  // What a reader's user lacks, even one of a device's name: only a device's user has a device's channel.
  requireAccess("device-" + doc.device);
  channel("device-" + doc.device, shardOf(doc.id));
  // Said in any case: what a device asks for itself (_exp) has no effect then.
  expiry(KEEP_DAYS > 0 ? Math.floor(Date.now() / 1000) + KEEP_DAYS * 86400 : 0);
}
