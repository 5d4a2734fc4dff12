-- NETBLT, the network block transfer protocol: on IP protocol 30 (RFC 998 section 1) and in UDP datagrams.
--
-- Versions 2 and 3 are read by the layout of RFC 998, 4 by that of draft-white-protocol-stack-00 (MIL-STD-2045-44500), 5
-- by that of draft-white-tsvwg-netblt-02.

local NAME = "trunkline_netblt"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = require "trunkline_layout"
local netblt = Proto("netblt", "Network Block Transfer Protocol")
local control = require "trunkline_netblt_control"

-- RFC 998 section 1.
local IP_PROTOCOL = 30
-- The server's port of RFC 1986, the only one that was ever published.
local UDP_PORT = 1818
-- Octets of the header that all packets share.
local COMMON_OCTETS = 12

local TRANSFER = { [0] = "READ: the active end gets the data", [1] = "WRITE: the active end sends the data" }

local fields = layout.fields(netblt, "netblt", {
    { "checksum", "uint16", "Checksum", base.HEX },
    { "checksum_status", "uint8", "Checksum Status", base.DEC, layout.STATUS },
    { "version", "uint8", "Version", base.DEC },
    { "type", "uint8", "Type", base.DEC },
    { "packet", "string", "Packet" },
    { "length", "uint16", "Length", base.DEC },
    { "local_port", "uint16", "Local Port", base.DEC },
    { "foreign_port", "uint16", "Foreign Port", base.DEC },
    { "padding", "bytes", "Padding" },
    { "padding_word", "uint16", "Padding", base.HEX },
    { "uid", "uint32", "Connection Unique ID", base.HEX },
    { "buffer_size", "uint32", "Buffer Size (octets)", base.DEC },
    { "transfer_size", "uint32", "Transfer Size (octets)", base.DEC },
    { "packet_size", "uint16", "DATA Packet Size (octets)", base.DEC },
    { "burst_size", "uint16", "Burst Size (packets)", base.DEC },
    { "burst_interval", "uint16", "Burst Interval (ms)", base.DEC },
    { "death", "uint16", "Death Timer Value (s)", base.DEC },
    { "flags", "uint16", "Flags", base.HEX },
    { "checksummed", "bool", "C: data are checksummed", 16, nil, 0x0002 },
    { "write", "uint16", "M: transfer mode", base.DEC, TRANSFER, 0x0001 },
    { "parity", "bool", "Parity may follow the data", 16, nil, 0x0004 },
    { "outstanding", "uint16", "Maximum Outstanding Buffers", base.DEC },
    { "client_string", "string", "Client String" },
    { "reason", "string", "Reason" },
    { "text", "string", "Text" },
    { "buffer", "uint32", "Buffer Number", base.DEC },
    { "touched", "uint32", "Last Buffer Touched", base.DEC },
    { "ack", "uint16", "High Consecutive Sequence Number Received", base.DEC },
    { "number", "uint16", "Packet Number", base.DEC },
    { "row", "uint16", "Row of Parity", base.DEC },
    { "buffer_packets", "uint16", "Packets of the Buffer", base.DEC },
    { "tail", "uint16", "Length of the Last Packet (octets)", base.DEC },
    { "data_checksum", "uint16", "Data Area Checksum", base.HEX },
    { "data_checksum_status", "uint8", "Data Area Checksum Status", base.DEC, layout.STATUS },
    { "last", "bool", "L: last buffer of the transfer", 16, nil, 0x0001 },
    { "data", "bytes", "Data" },
    { "data_length", "uint16", "Data Length (octets)", base.DEC },
    { "left_out", "uint16", "Data that the capsule has no room for (octets)", base.DEC },
    { "message", "none", "Control Message" },
    { "message_type", "uint8", "Message Type", base.DEC, control.TYPES },
    { "message_padding", "uint8", "Padding", base.HEX },
    { "sequence", "uint16", "Sequence Number", base.DEC },
    { "message_buffer", "uint32", "Buffer Number", base.DEC },
    { "offered_size", "uint16", "New Offered Burst Size (packets)", base.DEC },
    { "offered_interval", "uint16", "New Offered Burst Interval (ms)", base.DEC },
    { "control_timer", "uint16", "Control Timer Value (ms)", base.DEC },
    { "missing_count", "uint16", "Number of Missing Packets", base.DEC },
    { "missing", "uint16", "Missing Packet", base.DEC },
})

local expert = {
    checksum = ProtoExpert.new("netblt.checksum.bad", "The checksum of the header is wrong",
        expert.group.CHECKSUM, expert.severity.ERROR),
    data_checksum = ProtoExpert.new("netblt.data_checksum.bad", "The checksum of the data is wrong",
        expert.group.CHECKSUM, expert.severity.ERROR),
    short = ProtoExpert.new("netblt.short", "The packet is shorter than its type or its length says",
        expert.group.MALFORMED, expert.severity.ERROR),
    version = ProtoExpert.new("netblt.version.unknown", "The version is not known",
        expert.group.UNDECODED, expert.severity.ERROR),
    type = ProtoExpert.new("netblt.type.unknown", "The version has no such type of packet",
        expert.group.UNDECODED, expert.severity.ERROR),
    unended = ProtoExpert.new("netblt.string.unended", "No NUL ends the string",
        expert.group.MALFORMED, expert.severity.ERROR),
    message = ProtoExpert.new("netblt.message.unknown", "The type of the control message is not known",
        expert.group.UNDECODED, expert.severity.ERROR),
}
local experts = {}
for _, one in pairs(expert) do experts[#experts + 1] = one end
netblt.experts = experts

netblt.prefs.udp_port = Pref.uint("UDP port", UDP_PORT, "UDP port of NETBLT in datagrams; 0 for none")

-- RFC 998 section 5; the drafts leave KEEPALIVE out. PARITY is Trunkline's own, in version 5.
local CLASSIC_PACKETS = {
    [0] = "OPEN", "RESPONSE", "KEEPALIVE", "QUIT", "QUITACK", "ABORT", "DATA", "LDATA", "NULL-ACK", "CONTROL", "REFUSED",
    "DONE",
}
local V4_PACKETS = {
    [0] = "OPEN", "RESPONSE", "QUIT", "QUITACK", "ABORT", "DATA", "LDATA", "NULL-ACK", "CONTROL", "REFUSED", "DONE",
}
local V5_PACKETS = {
    [0] = "OPEN", "RESPONSE", "QUIT", "QUITACK", "ABORT", "DATA", "LDATA", "NULL-ACK", "CONTROL", "REFUSED", "DONE",
    "MESSAGE", "PARITY",
}

local COMMON = {
    { "checksum", 2 }, { "version", 1 }, { "type", 1 }, { "length", 2 }, { "local_port", 2 }, { "foreign_port", 2 },
    { "padding_word", 2 },
}

-- Bits of the flags of OPEN and RESPONSE, up to version 4 and in 5, and of data.
local TERMS_BITS, V5_TERMS_BITS, DATA_BITS = { "checksummed", "write" }, { "checksummed", "write", "parity" }, { "last" }

-- RFC 998: layouts of what follows the common header.
local CLASSIC = {
    packets = CLASSIC_PACKETS,
    is_classic = true,
    terms = {
        { "uid", 4 }, { "buffer_size", 4 }, { "transfer_size", 4 }, { "packet_size", 2 }, { "burst_size", 2 },
        { "burst_interval", 2 }, { "death", 2 }, { "flags", 2, TERMS_BITS }, { "outstanding", 2 },
    },
    data = { { "buffer", 4 }, { "ack", 2 }, { "number", 2 }, { "data_checksum", 2 }, { "flags", 2, DATA_BITS } },
    data_header = 24,
    null_ack = { { "ack", 2 }, { "burst_size", 2 }, { "burst_interval", 2 }, { "padding_word", 2 } },
}

-- The drafts' layouts with the types and the flags of one version.
local function later(packets, terms_bits)
    return {
        packets = packets,
        is_classic = false,
        terms = {
            { "uid", 4 }, { "buffer_size", 4 }, { "packet_size", 2 }, { "burst_size", 2 }, { "burst_interval", 2 },
            { "death", 2 }, { "flags", 2, terms_bits }, { "outstanding", 2 },
        },
        data = {
            { "buffer", 4 }, { "touched", 4 }, { "ack", 2 }, { "number", 2 }, { "data_checksum", 2 },
            { "flags", 2, DATA_BITS }, { "burst_size", 2 }, { "burst_interval", 2 },
        },
        parity = {
            { "buffer", 4 }, { "touched", 4 }, { "ack", 2 }, { "row", 2 }, { "buffer_packets", 2 }, { "tail", 2 },
            { "data_checksum", 2 }, { "flags", 2, DATA_BITS },
        },
        -- Of data and of parity.
        data_header = 32,
        null_ack = {
            { "touched", 4 }, { "ack", 2 }, { "burst_size", 2 }, { "burst_interval", 2 }, { "flags", 2, DATA_BITS },
        },
    }
end

local DIALECTS = { [2] = CLASSIC, [3] = CLASSIC, [4] = later(V4_PACKETS, TERMS_BITS), [5] = later(V5_PACKETS, V5_TERMS_BITS) }

-- What the ends of each connection last said of the data's checksum: lists of { frame, whether they have one }.
local agreed = {}

function netblt.init()
    agreed = {}
end

-- A key of the connection that holds for both directions: addresses, UDP ports (0 without UDP) and NETBLT's own ports.
local function connection(pinfo, values)
    local here = table.concat({ tostring(pinfo.src), pinfo.src_port, values.local_port }, " ")
    local there = table.concat({ tostring(pinfo.dst), pinfo.dst_port, values.foreign_port }, " ")
    if here > there then here, there = there, here end
    return here .. " " .. there
end

-- Notes whether the data of a connection have a checksum from this frame on.
local function agree(pinfo, values, checksummed)
    if pinfo.visited then return end
    local key = connection(pinfo, values)
    agreed[key] = agreed[key] or {}
    table.insert(agreed[key], { pinfo.number, checksummed })
end

-- Whether the data of a frame have a checksum; nil if no frame before it tells.
local function has_data_checksum(pinfo, values)
    local known = nil
    for _, one in ipairs(agreed[connection(pinfo, values)] or {}) do
        if one[1] > pinfo.number then break end
        known = one[2]
    end
    return known
end

local function add_status(tree, field, item, problem, status)
    layout.generated(tree:add(field, status))
    if status == layout.BAD then item:add_proto_expert_info(problem) end
    if status ~= layout.ABSENT then item:append_text(" [" .. layout.STATUS[status]:lower() .. "]") end
end

-- Adds a string up to its NUL and the padding behind it. Returns it.
local function read_string(reader, field)
    local count = reader:left()
    if count == 0 then return "" end
    local range = reader:take(count)
    local text = range:string()
    local nul = range:raw():find("\0", 1, true)
    if not nul then
        reader.tree:add(field, range):add_proto_expert_info(expert.unended)
        return text
    end
    reader.tree:add(field, range(0, nul))
    if nul < count then reader.tree:add(fields.padding, range(nul)) end
    return range(0, nul):stringz()
end

local function read_terms(reader, packet)
    local values = reader:read(fields, packet.dialect.terms)
    if not values then return nil end
    local checksummed = math.floor(values.flags / 2) % 2 == 1
    agree(packet.pinfo, packet.values, checksummed)
    local text = read_string(reader, fields.client_string)
    local mode = values.flags % 2 == 1 and "WRITE" or "READ"
    return string.format("UID 0x%08x, %s, %d octets per buffer, %d per packet, %d packets per %d ms, %d buffers, '%s'",
        values.uid, mode, values.buffer_size, values.packet_size, values.burst_size, values.burst_interval,
        values.outstanding, text)
end

-- The status of the checksum of data, all of which are there if `range` is not nil or `length` is 0.
local function data_status(packet, values, range, length)
    local agreement = has_data_checksum(packet.pinfo, packet.values)
    if agreement == false or (agreement == nil and values.data_checksum == 0) then return layout.ABSENT end
    if length > 0 and not range then return layout.UNVERIFIED end
    local sum = layout.checksum(range and range:raw() or "")
    return sum == values.data_checksum and layout.GOOD or layout.BAD
end

-- Adds data, of which a capsule may hold fewer than the length says.
local function add_data(reader, packet, values, items)
    local length = packet.values.length - packet.dialect.data_header
    layout.generated(reader.tree:add(fields.data_length, length))
    local range = reader:take(length)
    if range then
        reader.tree:add(fields.data, range)
    elseif length > reader:left() then
        layout.generated(reader.tree:add(fields.left_out, length - reader:left()))
        if not packet.may_be_cut then reader.tree:add_proto_expert_info(expert.short) end
        reader:octets(fields.data, reader:left())
    end
    local status = data_status(packet, values, range, length)
    add_status(reader.tree, fields.data_checksum_status, items.data_checksum, expert.data_checksum, status)
    return length
end

local function read_data(reader, packet)
    local values, items = reader:read(fields, packet.dialect.data)
    if not values then return nil end
    local length = add_data(reader, packet, values, items)
    local last = values.flags % 2 == 1 and ", last buffer" or ""
    return string.format("buffer %d, packet %d, %d octets, ack %d%s", values.buffer, values.number, length, values.ack, last)
end

local function read_parity(reader, packet)
    local values, items = reader:read(fields, packet.dialect.parity)
    if not values then return nil end
    local length = add_data(reader, packet, values, items)
    return string.format("buffer %d of %d packets, row %d, %d octets, ack %d", values.buffer, values.buffer_packets,
        values.row, length, values.ack)
end

local function read_null_ack(reader, packet)
    local values = reader:read(fields, packet.dialect.null_ack)
    if not values then return nil end
    local touched = values.touched and string.format(", buffer %d touched", values.touched) or ""
    return string.format("ack %d, %d packets per %d ms%s", values.ack, values.burst_size, values.burst_interval, touched)
end

local function read_messages(reader, packet)
    return control.read(reader, fields, expert, packet.dialect.is_classic)
end

local function read_nothing()
    return ""
end

local function string_reader(name)
    return function(reader)
        return "'" .. read_string(reader, fields[name]) .. "'"
    end
end

-- What follows the common header, by the name of the packet. Each returns a summary; nil if the packet ends too early.
local BODIES = {
    ["OPEN"] = read_terms,
    ["RESPONSE"] = read_terms,
    ["KEEPALIVE"] = read_nothing,
    ["QUIT"] = string_reader("reason"),
    ["QUITACK"] = read_nothing,
    ["ABORT"] = string_reader("reason"),
    ["DATA"] = read_data,
    ["LDATA"] = read_data,
    ["NULL-ACK"] = read_null_ack,
    ["CONTROL"] = read_messages,
    ["REFUSED"] = string_reader("reason"),
    ["DONE"] = read_nothing,
    ["MESSAGE"] = string_reader("text"),
    ["PARITY"] = read_parity,
}

-- The octets that the checksum of the header covers; nil if the fields contradict each other or the packet ends before.
local function header_octets(tvb, packet)
    local length = packet.values.length
    local is_data = packet.name == "DATA" or packet.name == "LDATA" or packet.name == "PARITY"
    local count = is_data and packet.dialect.data_header or length
    if count < COMMON_OCTETS or count > length or count > tvb:len() then return nil end
    return tvb(0, count):raw()
end

local function check_header(tvb, packet, tree, item)
    local octets = header_octets(tvb, packet)
    local status = layout.UNVERIFIED
    if octets then
        status = layout.checksum(octets) == 0 and layout.GOOD or layout.BAD
    else
        tree:add_proto_expert_info(expert.short)
    end
    add_status(tree, fields.checksum_status, item, expert.checksum, status)
end

-- Adds what follows the common header. Returns a summary.
local function read_body(reader, packet)
    reader.limit = math.min(reader.limit, packet.values.length)
    local summary = BODIES[packet.name](reader, packet)
    if not summary then
        reader.tree:add_proto_expert_info(expert.short)
        return "cut short"
    end
    reader:octets(fields.padding, reader:left())
    return summary
end

-- Adds a packet to `tree`; if `may_be_cut`, data may be missing at its end. Returns its summary.
local function dissect(tvb, pinfo, parent, may_be_cut)
    local tree = parent:add(netblt, tvb())
    local reader = layout.reader(tvb, 0, tvb:len(), tree)
    local values, items = reader:read(fields, COMMON)
    if not values then
        tree:add_proto_expert_info(expert.short)
        return "cut short"
    end
    local ports = string.format("%d → %d", values.local_port, values.foreign_port)
    local dialect = DIALECTS[values.version]
    if not dialect then
        items.version:add_proto_expert_info(expert.version)
        return string.format("version %d, %s", values.version, ports)
    end
    local name = dialect.packets[values.type]
    if not name then
        items.type:add_proto_expert_info(expert.type)
        return string.format("type %d of version %d, %s", values.type, values.version, ports)
    end
    items.type:append_text(" (" .. name .. ")")
    layout.generated(tree:add(fields.packet, name))
    may_be_cut = may_be_cut or tvb:reported_len() > tvb:len()
    local packet = { pinfo = pinfo, values = values, dialect = dialect, name = name, may_be_cut = may_be_cut }
    check_header(tvb, packet, tree, items.checksum)
    local summary = read_body(reader, packet)
    tree:append_text(", " .. name .. ", " .. ports)
    return name .. " " .. ports .. " " .. summary
end

function netblt.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "NETBLT"
    pinfo.cols.info = dissect(tvb, pinfo, tree, false)
    return tvb:len()
end

-- The length of the header of a packet, which is told by its version, type, length and checksum; nil if it is none.
local function recognise(tvb)
    if tvb:len() < COMMON_OCTETS then return nil end
    local dialect = DIALECTS[tvb(2, 1):uint()]
    local name = dialect and dialect.packets[tvb(3, 1):uint()]
    if not name then return nil end
    local packet = { values = { length = tvb(4, 2):uint() }, dialect = dialect, name = name }
    local octets = header_octets(tvb, packet)
    return octets and layout.checksum(octets) == 0 and #octets or nil
end

-- UDP datagrams of other ports: draft-white-tsvwg-netblt-02 leaves the port open.
netblt:register_heuristic("udp", function(tvb, pinfo, tree)
    if not recognise(tvb) then return false end
    netblt.dissector(tvb, pinfo, tree)
    return true
end)

DissectorTable.get("ip.proto"):add(IP_PROTOCOL, netblt)

local udp_port = 0
local function follow_port()
    local table_of_ports = DissectorTable.get("udp.port")
    if udp_port > 0 then table_of_ports:remove(udp_port, netblt) end
    udp_port = netblt.prefs.udp_port
    if udp_port > 0 then table_of_ports:add(udp_port, netblt) end
end
netblt.prefs_changed = follow_port
follow_port()

local module = { dissect = dissect, recognise = recognise }
package.loaded[NAME] = module
return module
